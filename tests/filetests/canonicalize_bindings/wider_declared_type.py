# A copy declared with a wider type is replaced by its source, but a match_cast that may fail is kept, although it only renames a
# value.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            a: R.Tensor(ndim=1, dtype="float32") = x
            b = R.exp(a)
            c = R.match_cast(y, R.Tensor((n,), "float32"))
            R.output(b, c)
        return (b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(dtype="float32", ndim=1)) -> R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         with R.dataflow():
#             b: R.Tensor(dtype="float32", ndim=1) = R.exp(x)
#             c: R.Tensor((n,), dtype="float32") = R.match_cast(y, R.Tensor((n,), dtype="float32"))
#             R.output(b, c)
#         return (b, c)
