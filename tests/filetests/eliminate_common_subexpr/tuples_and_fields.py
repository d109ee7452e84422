# Equal tuples and equal fields of one tuple are merged, so the second split and everything read from it disappear.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            s = R.split(x, 2, axis=1)
            t = R.split(x, 2, axis=1)
            a = s[0]
            b = t[0]
            c = t[1]
            d = R.add(R.add(a, b), c)
            R.output(d)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tuple(R.Tensor((n, 2), dtype="float32"), R.Tensor((n, 2), dtype="float32")) = R.split(x, indices_or_sections=2, axis=1)
#             a: R.Tensor((n, 2), dtype="float32") = s[0]
#             c: R.Tensor((n, 2), dtype="float32") = s[1]
#             lv: R.Tensor((n, 2), dtype="float32") = R.add(a, a)
#             d: R.Tensor((n, 2), dtype="float32") = R.add(lv, c)
#             R.output(d)
#         return d
