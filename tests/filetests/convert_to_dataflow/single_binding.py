# A single pure binding between effects is shorter than the minimum length of a dataflow block, so it stays outside.
# test opt --passes=ConvertToDataflow

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        R.call_packed("test.describe", a)
        b = R.sin(a)
        c = R.cos(b)
        R.call_packed("test.describe", c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         _: R.Object = R.call_packed("test.describe", a)
#         with R.dataflow():
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             c: R.Tensor((n,), dtype="float32") = R.cos(b)
#             R.output(c)
#         _1: R.Object = R.call_packed("test.describe", c)
#         return c
