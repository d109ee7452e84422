# Outside of dataflow blocks nothing is overwritten.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        b = R.sin(a)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         b: R.Tensor((n,), dtype="float32") = R.sin(a)
#         return b
