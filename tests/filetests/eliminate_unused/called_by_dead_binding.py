# A function whose only call has an unused result is reached: removing the call is the task of dead code elimination.
# test opt --passes=EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        y = cls.helper(x)
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def helper(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         y: R.Tensor((2,), dtype="float32") = cls.helper(x)
#         return x
