# The inner function does not read `b`, so the outer one, which only passes it on, does not need it either.
# test opt --passes=RemoveUnusedParameters

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def inner(a: R.Tensor((2,), "float32"), b: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(a)

    @R.function(private=True)
    def outer(b: R.Tensor((2,), "float32"), a: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return cls.inner(a, b)

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return cls.outer(R.sin(y), x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def inner(a: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(a)
#         return gv
#
#     @R.function(private=True)
#     def outer(a: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.inner(a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32"), y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = R.sin(y)
#         gv1: R.Tensor((2,), dtype="float32") = cls.outer(x)
#         return gv1
