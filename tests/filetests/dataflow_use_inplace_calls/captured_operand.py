# A local function captures `a`, so `a` lives beyond the block and is not overwritten.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(a)
            R.output(a, b)

        @R.function
        def inner(y: R.Tensor((3,), "float32")) -> R.Tensor((3,), "float32"):
            return R.add(y, a)

        return inner(b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3,), dtype="float32")) -> R.Tensor((3,), dtype="float32"):
#         with R.dataflow():
#             a: R.Tensor((3,), dtype="float32") = R.exp(x)
#             b: R.Tensor((3,), dtype="float32") = R.sin(a)
#             R.output(a, b)
#         @R.function
#         def inner(y: R.Tensor((3,), dtype="float32")) -> R.Tensor((3,), dtype="float32"):
#             gv: R.Tensor((3,), dtype="float32") = R.add(y, a)
#             return gv
#         gv1: R.Tensor((3,), dtype="float32") = inner(b)
#         return gv1
