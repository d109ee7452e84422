# Constants in an arm of a branch are folded there; the result of the branch is not, since the condition is unknown.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        if c:
            a = R.add(R.const(1, "int32"), R.const(2, "int32"))
            y = R.multiply(x, a)
        else:
            y = R.subtract(R.const(5, "int32"), R.const(7, "int32"))
        z = R.add(y, R.const(1, "int32"))
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((), dtype="int32")) -> R.Tensor((), dtype="int32"):
#         if c:
#             gv: R.Tensor((), dtype="int32") = R.multiply(x, R.const(3, "int32"))
#             y: R.Tensor((), dtype="int32") = gv
#         else:
#             y: R.Tensor((), dtype="int32") = R.const(-2, "int32")
#         z: R.Tensor((), dtype="int32") = R.add(y, R.const(1, "int32"))
#         return z
