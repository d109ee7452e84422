# Each dataflow block is sorted on its own: no binding crosses the call between them.
# test opt --passes=TopologicalSort

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(x)
            c = R.cos(a)
            R.output(b, c)
        R.call_packed("test.describe", c)
        with R.dataflow():
            d = R.add(b, c)
            e = R.multiply(b, c)
            f = R.negative(d)
            g = R.add(e, f)
            R.output(g)
        return g

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             c: R.Tensor((n,), dtype="float32") = R.cos(a)
#             b: R.Tensor((n,), dtype="float32") = R.sin(x)
#             R.output(c, b)
#         _: R.Object = R.call_packed("test.describe", c)
#         with R.dataflow():
#             d: R.Tensor((n,), dtype="float32") = R.add(b, c)
#             f: R.Tensor((n,), dtype="float32") = R.negative(d)
#             e: R.Tensor((n,), dtype="float32") = R.multiply(b, c)
#             g: R.Tensor((n,), dtype="float32") = R.add(e, f)
#             R.output(g)
#         return g
