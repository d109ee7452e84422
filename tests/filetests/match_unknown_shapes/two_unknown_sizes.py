# Two unknown sizes get two symbols; the addition checks at run time whether they fit.
# test opt --passes=MatchUnknownShapes

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        with R.dataflow():
            a = R.unique(x)
            b = R.unique(R.add(x, x))
            c = R.add(a, b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         a_0 = T.int64()
#         b_0 = T.int64()
#         with R.dataflow():
#             a: R.Tensor(dtype="int64", ndim=1) = R.unique(x)
#             a1: R.Tensor((a_0,), dtype="int64") = R.match_cast(a, R.Tensor((a_0,), dtype="int64"))
#             lv: R.Tensor((n,), dtype="int64") = R.add(x, x)
#             b: R.Tensor(dtype="int64", ndim=1) = R.unique(lv)
#             b1: R.Tensor((b_0,), dtype="int64") = R.match_cast(b, R.Tensor((b_0,), dtype="int64"))
#             c: R.Tensor((T.Select(a_0 == 1, b_0, a_0),), dtype="int64") = R.add(a1, b1)
#             R.output(c)
#         return c
