# An operand of unknown rank cannot be matched with symbols; its operator is compiled at run time.
# test opt --passes=MatchUnknownShapes

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
        with R.dataflow():
            y = R.exp(x)
            z = R.add(y, y)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32")) -> R.Tensor(dtype="float32"):
#         with R.dataflow():
#             y: R.Tensor(dtype="float32") = R.exp(x)
#             z: R.Tensor(dtype="float32") = R.add(y, y)
#             R.output(z)
#         return z
