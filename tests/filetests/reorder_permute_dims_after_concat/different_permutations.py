# Operands that are transposed differently, or not at all, stay.
# test opt --passes=ReorderPermuteDimsAfterConcat

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2, 2), "float32"), y: R.Tensor((2, 2, 2), "float32")) -> R.Object:
        with R.dataflow():
            a = R.permute_dims(x, axes=[1, 2, 0])
            b = R.permute_dims(y, axes=[2, 1, 0])
            c = R.concat((a, b), axis=1)
            d = R.concat((a, y), axis=1)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 2, 2), dtype="float32"), y: R.Tensor((2, 2, 2), dtype="float32")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((2, 2, 2), dtype="float32") = R.permute_dims(x, axes=[1, 2, 0])
#             b: R.Tensor((2, 2, 2), dtype="float32") = R.permute_dims(y, axes=[2, 1, 0])
#             c: R.Tensor((2, 4, 2), dtype="float32") = R.concat((a, b), axis=1)
#             d: R.Tensor((2, 4, 2), dtype="float32") = R.concat((a, y), axis=1)
#             R.output(c, d)
#         return (c, d)
