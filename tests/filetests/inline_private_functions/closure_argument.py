# A private function that takes a function as an argument is inlined; the call of its parameter becomes a call of the argument.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def twice(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), purity=True), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return f(f(x))

    @R.function
    def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module

        @R.function
        def scale(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.multiply(y, w)

        return cls.twice(scale, x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32"), w: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         @R.function
#         def scale(y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#             gv: R.Tensor((2,), dtype="float32") = R.multiply(y, w)
#             return gv
#         gv2: R.Tensor((2,), dtype="float32") = scale(x)
#         gv1: R.Tensor((2,), dtype="float32") = scale(gv2)
#         return gv1
