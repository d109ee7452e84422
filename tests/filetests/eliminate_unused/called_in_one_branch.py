# Functions called in only one arm of a branch, or only in a local function, are reached.
# test opt --passes=EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def left(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(x)

    @R.function(private=True)
    def right(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.sin(x)

    @R.function(private=True)
    def nowhere(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.cos(x)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module

        @R.function
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return cls.right(y)

        if c:
            z = cls.left(x)
        else:
            z = inner(x)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def left(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function(private=True)
#     def right(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.sin(x)
#         return gv
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         @R.function
#         def inner(y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#             gv: R.Tensor((2,), dtype="float32") = cls.right(y)
#             return gv
#         if c:
#             gv1: R.Tensor((2,), dtype="float32") = cls.left(x)
#             z: R.Tensor((2,), dtype="float32") = gv1
#         else:
#             gv2: R.Tensor((2,), dtype="float32") = inner(x)
#             z: R.Tensor((2,), dtype="float32") = gv2
#         return z
