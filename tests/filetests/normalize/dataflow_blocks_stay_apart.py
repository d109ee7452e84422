# Adjacent dataflow blocks are not merged: the second block reads an output of the first.
# test opt --passes=Normalize

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.add(a, x)
            R.output(b)
        with R.dataflow():
            c = R.multiply(b, b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             b: R.Tensor((n,), dtype="float32") = R.add(a, x)
#             R.output(b)
#         with R.dataflow():
#             c: R.Tensor((n,), dtype="float32") = R.multiply(b, b)
#             R.output(c)
#         return c
