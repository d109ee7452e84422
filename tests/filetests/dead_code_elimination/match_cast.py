# A match_cast stays if it may fail, or if it defines a symbol that is used.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32"), y: R.Tensor(("k",), "float32"), z: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        j = T.int64()
        names_unused = R.match_cast(y, R.Tensor((j,), "float32"))
        names = R.match_cast(x, R.Tensor((n, m), "float32"))
        checks = R.match_cast(z, R.Tensor((k,), "float32"))
        r = R.zeros(R.shape([n]), "float32")
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=2), y: R.Tensor(("k",), dtype="float32"), z: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
#         k = T.int64()
#         n = T.int64()
#         m = T.int64()
#         names: R.Tensor((n, m), dtype="float32") = R.match_cast(x, R.Tensor((n, m), dtype="float32"))
#         checks: R.Tensor((k,), dtype="float32") = R.match_cast(z, R.Tensor((k,), dtype="float32"))
#         r: R.Tensor((n,), dtype="float32") = R.zeros(R.shape([n]))
#         return r
