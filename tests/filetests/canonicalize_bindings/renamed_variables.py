# Variables that only rename another variable are replaced by it, within a dataflow block and across blocks.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = x
            b = a
            c = R.add(b, y)
            d = c
            e = d
            R.output(e)
        f = e
        g = R.multiply(f, x)
        h = g
        return h

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             e: R.Tensor((n,), dtype="float32") = R.add(x, y)
#             R.output(e)
#         g: R.Tensor((n,), dtype="float32") = R.multiply(e, x)
#         return g
