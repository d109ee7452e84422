# The result may overwrite an operand of its own size, but not one that is broadcast, nor one of symbolic size that may be
# broadcast.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 4), "float32")) -> R.Object:
        with R.dataflow():
            row = R.exp(R.sum(x, axis=[0]))
            a = R.add(x, row)
            e = R.exp(y)
            b = R.add(a, e)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("m", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((4,), dtype="float32") = R.sum(x, axis=[0])
#             row: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.exp_inplace, (lv,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#             a: R.Tensor((n, 4), dtype="float32") = R.add(x, row)
#             e: R.Tensor((m, 4), dtype="float32") = R.exp(y)
#             b: R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32") = R.add(a, e)
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def exp_inplace(A: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(A[v_i0])
#                 A[v_i0] = T.exp(A[v_i0])
