# `mode="nan"` stays: with no rows to sum, the product would be 0 instead of NaN. Clamped indices move.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 5), "float32"), i: R.Tensor(("m",), "int64")) -> R.Object:
        with R.dataflow():
            a = R.take(w, i, axis=1, mode="nan")
            y = R.matmul(x, a)
            b = R.take(w, i, axis=1, mode="clip")
            z = R.matmul(x, b)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 5), dtype="float32"), i: R.Tensor(("m",), dtype="int64")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((4, m), dtype="float32") = R.take(w, i, axis=1, mode="nan")
#             y: R.Tensor((n, m), dtype="float32") = R.matmul(x, a)
#             lv: R.Tensor((n, 5), dtype="float32") = R.matmul(x, w)
#             z: R.Tensor((n, m), dtype="float32") = R.take(lv, i, axis=-1, mode="clip")
#             R.output(y, z)
#         return (y, z)
