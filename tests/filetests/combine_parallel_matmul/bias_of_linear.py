# A bias is not merged: it is added to its part of the split.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 3), "float32"), v: R.Tensor((4, 2), "float32"), b: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, w)
            c = R.add(a, b)
            d = R.matmul(x, v)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 3), dtype="float32"), v: R.Tensor((4, 2), dtype="float32"), b: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((4, 5), dtype="float32") = R.concat((w, v), axis=-1)
#             lv1: R.Tensor((n, 5), dtype="float32") = R.matmul(x, lv)
#             lv2: R.Tuple(R.Tensor((n, 3), dtype="float32"), R.Tensor((n, 2), dtype="float32")) = R.split(lv1, indices_or_sections=[3], axis=-1)
#             a: R.Tensor((n, 3), dtype="float32") = lv2[0]
#             c: R.Tensor((n, 3), dtype="float32") = R.add(a, b)
#             d: R.Tensor((n, 2), dtype="float32") = lv2[1]
#             R.output(c, d)
#         return (c, d)
