# Queries, keys and values: one product of 12 columns, split at 4 and 6.
# test opt --passes=CombineParallelMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 8), "float32"), q: R.Tensor((8, 4), "float32"), k: R.Tensor((8, 2), "float32"), v: R.Tensor((8, 6), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, q)
            b = R.matmul(x, k)
            c = R.matmul(x, v)
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 8), dtype="float32"), q: R.Tensor((8, 4), dtype="float32"), k: R.Tensor((8, 2), dtype="float32"), v: R.Tensor((8, 6), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((8, 12), dtype="float32") = R.concat((q, k, v), axis=-1)
#             lv1: R.Tensor((n, 12), dtype="float32") = R.matmul(x, lv)
#             lv2: R.Tuple(R.Tensor((n, 4), dtype="float32"), R.Tensor((n, 2), dtype="float32"), R.Tensor((n, 6), dtype="float32")) = R.split(lv1, indices_or_sections=[4, 6], axis=-1)
#             a: R.Tensor((n, 4), dtype="float32") = lv2[0]
#             b: R.Tensor((n, 2), dtype="float32") = lv2[1]
#             c: R.Tensor((n, 6), dtype="float32") = lv2[2]
#             R.output(a, b, c)
#         return (a, b, c)
