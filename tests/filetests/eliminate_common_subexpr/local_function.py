# Equal values of a local function are merged, but not with the equal value of the enclosing function, which it would have to
# capture.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        a = R.exp(x)

        @R.function
        def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            b = R.exp(x)
            c = R.exp(x)
            return R.add(R.add(b, c), y)

        return inner(a)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3,), dtype="float32")) -> R.Tensor((3,), dtype="float32"):
#         a: R.Tensor((3,), dtype="float32") = R.exp(x)
#         @R.function
#         def inner(y: R.Tensor((3,), dtype="float32")) -> R.Tensor((3,), dtype="float32"):
#             b: R.Tensor((3,), dtype="float32") = R.exp(x)
#             gv: R.Tensor((3,), dtype="float32") = R.add(b, b)
#             gv1: R.Tensor((3,), dtype="float32") = R.add(gv, y)
#             return gv1
#         gv2: R.Tensor((3,), dtype="float32") = inner(a)
#         return gv2
