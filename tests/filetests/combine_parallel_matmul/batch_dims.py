# The left operand may have batch dims; the split is along the last axis. A right operand of three dims stays.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("b", "n", 4), "float32"), w: R.Tensor((4, 3), "float32"), v: R.Tensor((4, 2), "float32"), u: R.Tensor(("b", 4, 2), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(x, v)
            c = R.matmul(x, u)
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("b", "n", 4), dtype="float32"), w: R.Tensor((4, 3), dtype="float32"), v: R.Tensor((4, 2), dtype="float32"), u: R.Tensor(("b", 4, 2), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((4, 5), dtype="float32") = R.concat((w, v), axis=-1)
#             lv1: R.Tensor((b, n, 5), dtype="float32") = R.matmul(x, lv)
#             lv2: R.Tuple(R.Tensor((b, n, 3), dtype="float32"), R.Tensor((b, n, 2), dtype="float32")) = R.split(lv1, indices_or_sections=[3], axis=-1)
#             a: R.Tensor((b, n, 3), dtype="float32") = lv2[0]
#             b1: R.Tensor((b, n, 2), dtype="float32") = lv2[1]
#             c: R.Tensor((b, n, 2), dtype="float32") = R.matmul(x, u)
#             R.output(a, b1, c)
#         return (a, b1, c)
