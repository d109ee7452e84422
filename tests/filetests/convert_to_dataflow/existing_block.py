# An existing dataflow block is kept as it is; the bindings around it get blocks of their own.
# test opt --passes=ConvertToDataflow

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        b = R.add(a, x)
        with R.dataflow():
            c = R.sin(b)
            R.output(c)
        d = R.cos(c)
        e = R.multiply(d, a)
        return e

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
#             R.output(a, b)
#         with R.dataflow():
#             c: R.Tensor((n,), dtype="float32") = R.sin(b)
#             R.output(c)
#         with R.dataflow():
#             d: R.Tensor((n,), dtype="float32") = R.cos(c)
#             e: R.Tensor((n,), dtype="float32") = R.multiply(d, a)
#             R.output(e)
#         return e
