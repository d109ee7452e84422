# A match_cast keeps its position, and the size that it defines is used behind it.
# test opt --passes=ToNonDataflow

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        m = T.int64()
        with R.dataflow():
            a = R.match_cast(x, R.Tensor((m,), "float32"))
            b = R.zeros(R.shape([m]), "float32")
            c = R.add(a, b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
#         m = T.int64()
#         a: R.Tensor((m,), dtype="float32") = R.match_cast(x, R.Tensor((m,), dtype="float32"))
#         b: R.Tensor((m,), dtype="float32") = R.zeros(R.shape([m]))
#         c: R.Tensor((m,), dtype="float32") = R.add(a, b)
#         return c
