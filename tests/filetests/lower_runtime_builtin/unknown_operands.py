# Operators with known operand types become loop functions; the others are dispatched at run time.
# test opt --passes=MatchUnknownShapes,LegalizeOps,ToNonDataflow,LowerRuntimeBuiltin

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(dtype="float32"), z: R.Tensor(("n",))) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.add(x, y)
            b = R.sum(a, axis=[-1], keepdims=True)
            c = R.exp(x)
            d = R.add(z, z)
            e = R.concat((b, c, y), axis=1)
            f = R.split(y, 1, axis=0)
            g = R.reshape(y, R.shape([n, -1]))
            h = R.multiply(y, R.prim_value(2))
            i = R.full(R.shape([n, 2]), R.const(1.5, "float32"))
            j = R.broadcast_to(y, R.shape([n * 2, n, 3]))
            k = R.squeeze(y)
            l = R.astype(z, "float16")
            R.output(a, b, c, d, e, f, g, h, i, j, k, l)
        return (b, c, e, f, g, h, i, k)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="float32"), y: R.Tensor(dtype="float32"), z: R.Tensor(("n",))) -> R.Object:
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         a: R.Tensor(dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.add"), R.str("R.add(a0, a1)"), x, y, sinfo_args=(R.Tensor(dtype="float32"),))
#         b: R.Tensor(dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.sum"), R.str("R.sum(a0, axis=[-1], keepdims=True)"), a, sinfo_args=(R.Tensor(dtype="float32"),))
#         c: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#         d: R.Tensor((n,)) = R.call_packed("pliant.call_operator", R.str("relax.add"), R.str("R.add(a0, a1)"), z, z, sinfo_args=(R.Tensor((n,)),))
#         e: R.Tensor(dtype="float32", ndim=2) = R.call_packed("pliant.call_operator", R.str("relax.concat"), R.str("R.concat((a0, a1, a2), axis=1)"), b, c, y, sinfo_args=(R.Tensor(dtype="float32", ndim=2),))
#         f: R.Tuple(R.Tensor(dtype="float32")) = R.call_packed("pliant.call_operator", R.str("relax.split"), R.str("R.split(a0, indices_or_sections=1)"), y, sinfo_args=(R.Tuple(R.Tensor(dtype="float32")),))
#         g: R.Tensor(dtype="float32", ndim=2) = R.call_packed("pliant.call_operator", R.str("relax.reshape"), R.str("R.reshape(a0, R.shape([n1, -1]))"), y, R.prim_value(n), sinfo_args=(R.Tensor(dtype="float32", ndim=2),))
#         h: R.Tensor(dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.multiply"), R.str("R.multiply(a0, R.prim_value(2))"), y, sinfo_args=(R.Tensor(dtype="float32"),))
#         i: R.Tensor((n, 2), dtype="float32") = R.call_tir(cls.full, R.tuple(), out_sinfo=R.Tensor((n, 2), dtype="float32"))
#         j: R.Tensor((n * 2, n, 3), dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.broadcast_to"), R.str("R.broadcast_to(a0, R.shape([n1, n2, 3]))"), y, R.prim_value(n * 2), R.prim_value(n), sinfo_args=(R.Tensor((n * 2, n, 3), dtype="float32"),))
#         k: R.Tensor(dtype="float32") = R.call_packed("pliant.call_operator", R.str("relax.squeeze"), R.str("R.squeeze(a0)"), y, sinfo_args=(R.Tensor(dtype="float32"),))
#         l: R.Tensor((n,), dtype="float16") = R.call_packed("pliant.call_operator", R.str("relax.astype"), R.str("R.astype(a0, dtype=\"float16\")"), z, sinfo_args=(R.Tensor((n,), dtype="float16"),))
#         return (b, c, e, f, g, h, i, k)
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 3), "float32")
#         compute = T.match_buffer(var_compute, (n, 3), "float32")
#         for i0, i1 in T.grid(n, 3):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def full(var_T_full: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         T_full = T.match_buffer(var_T_full, (n, 2), "float32")
#         for ax0, ax1 in T.grid(n, 2):
#             with T.block("T_full"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads()
#                 T.writes(T_full[v_ax0, v_ax1])
#                 T_full[v_ax0, v_ax1] = T.float32(1.5)
