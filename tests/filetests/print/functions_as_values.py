# Function types, a local function, a closure, and a call through a parameter.
# test print

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def scale(x: R.Tensor((2,), "float32"), k: R.Tensor((), "float32")) -> R.Tensor((2,), "float32"):
        return R.multiply(x, k)

    @R.function
    def apply(f: R.Callable((R.Tensor((2,), "float32"),), R.Tensor((2,), "float32"), purity=True), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return f(x)

    @R.function
    def main(x: R.Tensor((2,), "float32"), k: R.Tensor((), "float32")) -> R.Object:
        cls = Module

        @R.function
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.add(y, x)

        f = R.make_closure(cls.scale, (k,))
        return (cls.apply(inner, x), f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def scale(x: R.Tensor((2,), dtype="float32"), k: R.Tensor((), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.multiply(x, k)
#         return gv
#
#     @R.function
#     def apply(f: R.Callable((R.Tensor((2,), dtype="float32"),), R.Tensor((2,), dtype="float32"), True), x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = f(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32"), k: R.Tensor((), dtype="float32")) -> R.Object:
#         cls = Module
#         @R.function
#         def inner(y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#             gv: R.Tensor((2,), dtype="float32") = R.add(y, x)
#             return gv
#         f: R.Callable((R.Tensor((2,), dtype="float32"),), R.Tensor((2,), dtype="float32"), True) = R.make_closure(cls.scale, (k,))
#         gv1: R.Tensor((2,), dtype="float32") = cls.apply(inner, x)
#         return (gv1, f)
