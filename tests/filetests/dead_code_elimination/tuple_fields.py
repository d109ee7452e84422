# A tuple is kept as a whole if one of its fields is read: what it holds is computed, too. The unread output `v` is removed.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(x)
            t = (a, b)
            u = t[0]
            v = t[1]
            R.output(u, v)
        return u

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             b: R.Tensor((n,), dtype="float32") = R.sin(x)
#             t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (a, b)
#             u: R.Tensor((n,), dtype="float32") = t[0]
#             R.output(u)
#         return u
