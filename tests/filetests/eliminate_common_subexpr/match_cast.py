# Equal match_casts are merged. One that defines another symbol is another value: its size is not known to be equal.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Object:
        k = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.match_cast(x, R.Tensor((k,), "float32"))
            b = R.match_cast(x, R.Tensor((m,), "float32"))
            f = R.match_cast(x, R.Tensor((k,), "float32"))
            c = R.zeros(R.shape([k]), "float32")
            d = R.ones(R.shape([m]), "float32")
            e = R.add(R.add(a, c), R.add(b, d))
            R.output(e, f)
        return (e, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=1)) -> R.Object:
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((k,), dtype="float32") = R.match_cast(x, R.Tensor((k,), dtype="float32"))
#             b: R.Tensor((m,), dtype="float32") = R.match_cast(x, R.Tensor((m,), dtype="float32"))
#             c: R.Tensor((k,), dtype="float32") = R.zeros(R.shape([k]))
#             d: R.Tensor((m,), dtype="float32") = R.ones(R.shape([m]))
#             lv: R.Tensor((k,), dtype="float32") = R.add(a, c)
#             lv1: R.Tensor((m,), dtype="float32") = R.add(b, d)
#             e: R.Tensor((T.Select(k == 1, m, k),), dtype="float32") = R.add(lv, lv1)
#             R.output(a, e)
#         return (e, a)
