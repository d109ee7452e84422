# A split becomes one call with two outputs, also if one of them has no elements.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        with R.dataflow():
            t = R.split(x, [4])
            a = t[0]
            b = t[1]
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((0,), dtype="float32")) = R.call_tir(cls.split, (x,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((0,), dtype="float32")])
#             a: R.Tensor((4,), dtype="float32") = t[0]
#             b: R.Tensor((0,), dtype="float32") = t[1]
#             R.output(a, b)
#         return (a, b)
#
#     @T.prim_func(private=True)
#     def split(A: T.Buffer((4,), "float32"), T_split_0: T.Buffer((4,), "float32"), T_split_1: T.Buffer((0,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0 in range(4):
#             with T.block("T_split_0"):
#                 v_ax0 = T.axis.spatial(4, ax0)
#                 T.reads(A[v_ax0])
#                 T.writes(T_split_0[v_ax0])
#                 T_split_0[v_ax0] = A[v_ax0]
#         for ax0 in range(0):
#             with T.block("T_split_1"):
#                 v_ax0 = T.axis.spatial(0, ax0)
#                 T.reads(A[v_ax0 + 4])
#                 T.writes(T_split_1[v_ax0])
#                 T_split_1[v_ax0] = A[v_ax0 + 4]
