# Merged functions with sizes that are terms, sizes passed as a shape, and reads of tuple fields.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "n * 2"), "float32"), y: R.Tensor(("n * 2",), "int64")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.concat((x, x), axis=1)
            b = R.exp(a)
            c = R.add(y, y)
            d = R.multiply(c, R.const(3, "int64"))
            e = R.astype(d, "float32")
            R.output(b, e)
        return (b, e)

    @R.function
    def views(y: R.Tensor(("n * 2",), "float32"), s: R.Shape(["n"])) -> R.Tensor(("n * 4",), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.exp(y)
            b = R.concat((a, y), axis=0)
            c = R.negative(b)
            R.output(c)
        return c

    @R.function
    def split(x: R.Tensor(("n", 6), "float16")) -> R.Object:
        with R.dataflow():
            parts = R.split(x, 2, axis=1)
            a = parts[0]
            b = parts[1]
            c = R.multiply(a, R.sigmoid(b))
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "n * 2"), dtype="float32"), y: R.Tensor(("n * 2",), dtype="int64")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n, n * 4), dtype="float32") = R.call_tir(cls.fused_concat_exp, (x,), out_sinfo=R.Tensor((n, n * 4), dtype="float32"))
#             e: R.Tensor((n * 2,), dtype="float32") = R.call_tir(cls.fused_add_multiply_astype, (y,), out_sinfo=R.Tensor((n * 2,), dtype="float32"), tir_vars=R.shape([n]))
#             R.output(b, e)
#         return (b, e)
#
#     @R.function
#     def views(y: R.Tensor(("n * 2",), dtype="float32"), s: R.Shape(["n"])) -> R.Tensor(("n * 4",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((n * 4,), dtype="float32") = R.call_tir(cls.fused_exp1_concat1_negative, (y,), out_sinfo=R.Tensor((n * 4,), dtype="float32"), tir_vars=R.shape([n]))
#             R.output(c)
#         return c
#
#     @R.function
#     def split(x: R.Tensor(("n", 6), dtype="float16")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((n, 3), dtype="float16") = R.call_tir(cls.fused_split1_sigmoid_multiply1, (x,), out_sinfo=R.Tensor((n, 3), dtype="float16"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def fused_concat_exp(var_x: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, n * 2), "float32")
#         b = T.match_buffer(var_b, (n, n * 4), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((n, n * 4), "float32")
#             for ax0, ax1 in T.grid(n, n * 4):
#                 with T.block("T_concat"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(x[v_ax0, v_ax1], x[v_ax0, v_ax1 - n * 2])
#                     T.writes(a[v_ax0, v_ax1])
#                     a[v_ax0, v_ax1] = T.if_then_else(v_ax1 < n * 2, x[v_ax0, v_ax1], x[v_ax0, v_ax1 - n * 2])
#             for i0, i1 in T.grid(n, n * 4):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(a[v_i0, v_i1])
#                     T.writes(b[v_i0, v_i1])
#                     b[v_i0, v_i1] = T.exp(a[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def fused_add_multiply_astype(var_y: T.handle, var_e: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         y = T.match_buffer(var_y, (n * 2,), "int64")
#         e = T.match_buffer(var_e, (n * 2,), "float32")
#         with T.block("root"):
#             c = T.alloc_buffer((n * 2,), "int64")
#             d = T.alloc_buffer((n * 2,), "int64")
#             for ax0 in range(n * 2):
#                 with T.block("T_add"):
#                     v_ax0 = T.axis.spatial(n * 2, ax0)
#                     T.reads(y[v_ax0], y[v_ax0])
#                     T.writes(c[v_ax0])
#                     c[v_ax0] = y[v_ax0] + y[v_ax0]
#             for ax0 in range(n * 2):
#                 with T.block("T_multiply"):
#                     v_ax0 = T.axis.spatial(n * 2, ax0)
#                     T.reads(c[v_ax0])
#                     T.writes(d[v_ax0])
#                     d[v_ax0] = c[v_ax0] * 3
#             for i0 in range(n * 2):
#                 with T.block("compute"):
#                     v_i0 = T.axis.spatial(n * 2, i0)
#                     T.reads(d[v_i0])
#                     T.writes(e[v_i0])
#                     e[v_i0] = T.Cast("float32", d[v_i0])
#
#     @T.prim_func(private=True)
#     def fused_exp1_concat1_negative(var_y: T.handle, var_c: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         y = T.match_buffer(var_y, (n * 2,), "float32")
#         c = T.match_buffer(var_c, (n * 4,), "float32")
#         with T.block("root"):
#             a = T.alloc_buffer((n * 2,), "float32")
#             b = T.alloc_buffer((n * 4,), "float32")
#             for i0 in range(n * 2):
#                 with T.block("compute"):
#                     v_i0 = T.axis.spatial(n * 2, i0)
#                     T.reads(y[v_i0])
#                     T.writes(a[v_i0])
#                     a[v_i0] = T.exp(y[v_i0])
#             for ax0 in range(n * 4):
#                 with T.block("T_concat"):
#                     v_ax0 = T.axis.spatial(n * 4, ax0)
#                     T.reads(a[v_ax0], y[v_ax0 - n * 2])
#                     T.writes(b[v_ax0])
#                     b[v_ax0] = T.if_then_else(v_ax0 < n * 2, a[v_ax0], y[v_ax0 - n * 2])
#             for i0 in range(n * 4):
#                 with T.block("compute_1"):
#                     v_i0 = T.axis.spatial(n * 4, i0)
#                     T.reads(b[v_i0])
#                     T.writes(c[v_i0])
#                     c[v_i0] = b[v_i0] * T.float32(-1.0)
#
#     @T.prim_func(private=True)
#     def fused_split1_sigmoid_multiply1(var_x: T.handle, var_c: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 6), "float16")
#         c = T.match_buffer(var_c, (n, 3), "float16")
#         with T.block("root"):
#             parts = T.alloc_buffer((n, 3), "float16")
#             parts1 = T.alloc_buffer((n, 3), "float16")
#             lv = T.alloc_buffer((n, 3), "float16")
#             for ax0, ax1 in T.grid(n, 3):
#                 with T.block("T_split_0"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(x[v_ax0, v_ax1])
#                     T.writes(parts[v_ax0, v_ax1])
#                     parts[v_ax0, v_ax1] = x[v_ax0, v_ax1]
#             for ax0, ax1 in T.grid(n, 3):
#                 with T.block("T_split_1"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(x[v_ax0, v_ax1 + 3])
#                     T.writes(parts1[v_ax0, v_ax1])
#                     parts1[v_ax0, v_ax1] = x[v_ax0, v_ax1 + 3]
#             for i0, i1 in T.grid(n, 3):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.reads(parts1[v_i0, v_i1])
#                     T.writes(lv[v_i0, v_i1])
#                     lv[v_i0, v_i1] = T.sigmoid(parts1[v_i0, v_i1])
#             for ax0, ax1 in T.grid(n, 3):
#                 with T.block("T_multiply"):
#                     v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                     T.reads(parts[v_ax0, v_ax1], lv[v_ax0, v_ax1])
#                     T.writes(c[v_ax0, v_ax1])
#                     c[v_ax0, v_ax1] = parts[v_ax0, v_ax1] * lv[v_ax0, v_ax1]
