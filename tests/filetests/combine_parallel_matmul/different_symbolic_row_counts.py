# The matrices have different symbols as numbers of rows; both must be the number of columns of `x`.
# test opt --passes=CombineParallelMatmul
# no-run: the sizes differ in every run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), q: R.Tensor(("j", 2), "float32"), k: R.Tensor(("k", 3), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, q)
            b = R.matmul(x, k)
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), q: R.Tensor(("j", 2), dtype="float32"), k1: R.Tensor(("k", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         j = T.int64()
#         k = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((j, 5), dtype="float32") = R.concat((q, k1), axis=-1)
#             lv1: R.Tensor((n, 5), dtype="float32") = R.matmul(x, lv)
#             lv2: R.Tuple(R.Tensor((n, 2), dtype="float32"), R.Tensor((n, 3), dtype="float32")) = R.split(lv1, indices_or_sections=[2], axis=-1)
#             a: R.Tensor((n, 2), dtype="float32") = lv2[0]
#             b: R.Tensor((n, 3), dtype="float32") = lv2[1]
#             R.output(a, b)
#         return (a, b)
