# Constants computed before a branch are folded in its arms.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        two = R.add(R.const(1.0, "float32"), R.const(1.0, "float32"))
        if c:
            four = R.multiply(two, two)
            r = R.add(x, four)
        else:
            r = R.add(x, two)
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         if c:
#             gv: R.Tensor((n,), dtype="float32") = R.add(x, R.const(4.0, "float32"))
#             r: R.Tensor((n,), dtype="float32") = gv
#         else:
#             gv1: R.Tensor((n,), dtype="float32") = R.add(x, R.const(2.0, "float32"))
#             r: R.Tensor((n,), dtype="float32") = gv1
#         return r
