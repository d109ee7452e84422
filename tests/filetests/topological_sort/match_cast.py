# A binding that mentions a symbol follows the match_cast that defines the symbol.
# test opt --passes=TopologicalSort

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.exp(y)
            z = R.match_cast(x, R.Tensor((m,), "float32"))
            b = R.sin(y)
            c = R.zeros(R.shape([m]), "float32")
            d = R.add(c, z)
            e = R.exp(a)
            f = R.multiply(e, b)
            R.output(d, f)
        return R.concat((d, f), axis=0)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=1), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(y)
#             e: R.Tensor((n,), dtype="float32") = R.exp(a)
#             z: R.Tensor((m,), dtype="float32") = R.match_cast(x, R.Tensor((m,), dtype="float32"))
#             c: R.Tensor((m,), dtype="float32") = R.zeros(R.shape([m]))
#             d: R.Tensor((m,), dtype="float32") = R.add(c, z)
#             b: R.Tensor((n,), dtype="float32") = R.sin(y)
#             f: R.Tensor((n,), dtype="float32") = R.multiply(e, b)
#             R.output(d, f)
#         gv: R.Tensor((m + n,), dtype="float32") = R.concat((d, f))
#         return gv
