# Reshapes to shapes that are not provably equal stay: `(m, n)` is `(n, m)` only if both are equal, and the size of `z` is
# unknown.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), z: R.Tensor(ndim=1, dtype="float32")) -> R.Object:
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.reshape(z, R.shape([-1]))
            b = R.exp(a)
            d = R.reshape(x, R.shape([m, n]))
            R.output(b, d)
        return (b, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), z: R.Tensor(dtype="float32", ndim=1)) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor(dtype="float32", ndim=1) = R.reshape(z, R.shape([-1]))
#             b: R.Tensor(dtype="float32", ndim=1) = R.exp(a)
#             d: R.Tensor((m, n), dtype="float32") = R.reshape(x, R.shape([m, n]))
#             R.output(b, d)
#         return (b, d)
