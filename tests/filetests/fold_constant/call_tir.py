# Calls of loop functions with constant operands are evaluated.
# test opt --passes=FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.twice, (R.const([1.0, 2.0, 3.0, 4.0], "float32"),), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.twice, (a,), out_sinfo=R.Tensor((4,), "float32"))
            c = R.add(x, b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         with R.dataflow():
#             c: R.Tensor((4,), dtype="float32") = R.add(x, R.const([4.0, 8.0, 12.0, 16.0], "float32"))
#             R.output(c)
#         return c
