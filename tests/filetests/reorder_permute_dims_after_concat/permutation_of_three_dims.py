# The axis of the concatenation is mapped through the permutation: axis 2 of the results is axis 0 of the operands.
# test opt --passes=ReorderPermuteDimsAfterConcat,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "n", 3), "float32"), y: R.Tensor((4, "n", 3), "float32")) -> R.Tensor(("n", 3, 6), "float32"):
        with R.dataflow():
            a = R.permute_dims(x, axes=[1, 2, 0])
            b = R.permute_dims(y, axes=[1, 2, 0])
            c = R.concat((a, b), axis=2)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, "n", 3), dtype="float32"), y: R.Tensor((4, "n", 3), dtype="float32")) -> R.Tensor(("n", 3, 6), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((6, n, 3), dtype="float32") = R.concat((x, y))
#             c: R.Tensor((n, 3, 6), dtype="float32") = R.permute_dims(lv, axes=[1, 2, 0])
#             R.output(c)
#         return c
