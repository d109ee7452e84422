# A variable that is bound to a tuple literal counts as this literal.
# test opt --passes=ReorderPermuteDimsAfterConcat

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((3, 4), "float32"):
        with R.dataflow():
            a = R.permute_dims(x, axes=[1, 0])
            b = R.permute_dims(y, axes=[1, 0])
            t = (a, b)
            c = R.concat(t, axis=1)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32"), y: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((3, 4), dtype="float32"):
#         with R.dataflow():
#             lv: R.Tensor((4, 3), dtype="float32") = R.concat((x, y))
#             c: R.Tensor((3, 4), dtype="float32") = R.permute_dims(lv, axes=[1, 0])
#             R.output(c)
#         return c
