# The result has another type than the matrix product, so the product keeps its own buffer.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective,ReuseOutput

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Tensor(("n", 3), "float16"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.astype(a, "float16")
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 3), dtype="float32")) -> R.Tensor(("n", 3), dtype="float16"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n, 3), dtype="float16") = R.call_tir(cls.fused_matmul_astype, (x, w), out_sinfo=R.Tensor((n, 3), dtype="float16"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_matmul_astype(var_x: T.handle, w: T.Buffer((4, 3), "float32"), var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         b = T.match_buffer(var_b, (n, 3), "float16")
#         with T.block("root"):
#             a = T.alloc_buffer((n, 3), "float32")
#             for i, j, k in T.grid(n, 3, 4):
#                 with T.block("matmul"):
#                     v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                     T.reads(x[v_i, v_k], w[v_k, v_j])
#                     T.writes(a[v_i, v_j])
#                     with T.init():
#                         a[v_i, v_j] = T.float32(0.0)
#                     a[v_i, v_j] = a[v_i, v_j] + x[v_i, v_k] * w[v_k, v_j]
#             for i0, i1 in T.grid(n, 3):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(a[v_i0, v_i1])
#                     T.writes(b[v_i0, v_i1])
#                     b[v_i0, v_i1] = T.Cast("float16", a[v_i0, v_i1])
