# Copies and named constants are replaced inside of branches too.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = x
        one = R.const(1.0, "float32")
        if c:
            a = R.add(y, one)
            r = a
        else:
            b = y
            r = b
        s = r
        return s

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         if c:
#             a: R.Tensor((n,), dtype="float32") = R.add(x, R.const(1.0, "float32"))
#             r: R.Tensor((n,), dtype="float32") = a
#         else:
#             r: R.Tensor((n,), dtype="float32") = x
#         return r
