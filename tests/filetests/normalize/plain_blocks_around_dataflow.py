# Plain bindings before and after a dataflow block stay separate blocks, since the dataflow block lies between them.
# test opt --passes=Normalize

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        with R.dataflow():
            b = R.sin(a)
            R.output(b)
        c = R.add(b, a)
        d = R.multiply(c, c)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         with R.dataflow():
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             R.output(b)
#         c: R.Tensor((n,), dtype="float32") = R.add(b, a)
#         d: R.Tensor((n,), dtype="float32") = R.multiply(c, c)
#         return d
