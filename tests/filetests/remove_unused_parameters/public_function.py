# The signature of a public function does not change, and neither does that of a function used as a value.
# test opt --passes=RemoveUnusedParameters

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def public(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(a)

    @R.function(private=True)
    def value(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.sin(a)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        y = cls.public(x, x)
        z = cls.value(y, x)
        f = cls.value
        return (z, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def public(a: R.Tensor((2,), dtype="float32"), b: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(a)
#         return gv
#
#     @R.function(private=True)
#     def value(a: R.Tensor((2,), dtype="float32"), b: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.sin(a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Object:
#         cls = Module
#         y: R.Tensor((2,), dtype="float32") = cls.public(x, x)
#         z: R.Tensor((2,), dtype="float32") = cls.value(y, x)
#         f: R.Callable((R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")), R.Tensor((2,), dtype="float32"), True) = cls.value
#         return (z, f)
