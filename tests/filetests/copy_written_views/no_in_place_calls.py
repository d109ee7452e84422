# Without in-place calls in the module nothing is copied, although two views share memory and are returned.
# test opt --passes=CopyWrittenViews

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        n = T.int64()
        a = R.exp(x)
        b = R.reshape(a, R.shape([n * 2]))
        c = R.reshape(a, R.shape([2, n]))
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         a: R.Tensor((n, 2), dtype="float32") = R.exp(x)
#         b: R.Tensor((n * 2,), dtype="float32") = R.reshape(a, R.shape([n * 2]))
#         c: R.Tensor((2, n), dtype="float32") = R.reshape(a, R.shape([2, n]))
#         return (a, b, c)
