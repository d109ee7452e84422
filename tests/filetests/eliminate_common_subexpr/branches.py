# A branch reuses values that were computed before it, but values of one branch are not available in the other or after both.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        if c:
            b = R.exp(x)
            d = R.sin(x)
            r = R.add(b, d)
        else:
            d1 = R.sin(x)
            e = R.sin(x)
            r = R.add(d1, e)
        f = R.sin(x)
        g = R.add(r, f)
        h = R.add(g, a)
        return h

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         if c:
#             d: R.Tensor((n,), dtype="float32") = R.sin(x)
#             gv: R.Tensor((n,), dtype="float32") = R.add(a, d)
#             r: R.Tensor((n,), dtype="float32") = gv
#         else:
#             d1: R.Tensor((n,), dtype="float32") = R.sin(x)
#             gv1: R.Tensor((n,), dtype="float32") = R.add(d1, d1)
#             r: R.Tensor((n,), dtype="float32") = gv1
#         f: R.Tensor((n,), dtype="float32") = R.sin(x)
#         g: R.Tensor((n,), dtype="float32") = R.add(r, f)
#         h: R.Tensor((n,), dtype="float32") = R.add(g, a)
#         return h
