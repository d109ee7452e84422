# Depth first from the inputs: each chain is finished before the next one starts.
# test opt --passes=TopologicalSort

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(y)
            c = R.sin(a)
            d = R.sin(b)
            e = R.add(c, d)
            R.output(e)
        return e

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             c: R.Tensor((n,), dtype="float32") = R.sin(a)
#             b: R.Tensor((n,), dtype="float32") = R.exp(y)
#             d: R.Tensor((n,), dtype="float32") = R.sin(b)
#             e: R.Tensor((n,), dtype="float32") = R.add(c, d)
#             R.output(e)
#         return e
