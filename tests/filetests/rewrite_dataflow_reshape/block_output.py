# An output of the block stays a separate tensor, since a reshape would share the memory of `x`.
# test opt --passes=RewriteDataflowReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def flatten(A: T.Buffer((2, 3), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("b"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi // 3, vi % 3]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.flatten, (x,), out_sinfo=R.Tensor((6,), "float32"))
            R.output(a)
        return a

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def flatten(A: T.Buffer((2, 3), "float32"), B: T.Buffer((6,), "float32")):
#         for i in range(6):
#             with T.block("b"):
#                 vi = T.axis.spatial(6, i)
#                 B[vi] = A[vi // 3, vi % 3]
#
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((6,), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((6,), dtype="float32") = R.call_tir(cls.flatten, (x,), out_sinfo=R.Tensor((6,), dtype="float32"))
#             R.output(a)
#         return a
