# Only products are widened to float32. Sums and other operators on float16 stay: their loops accumulate in float32 already.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 2, 4, 4), "float16")) -> R.Object:
        with R.dataflow():
            a = R.sum(x, axis=[1])
            b = R.exp(a)
            c = R.nn.max_pool2d(x, pool_size=[2, 2])
            R.output(b, c)
        return (b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((1, 2, 4, 4), dtype="float16")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((1, 4, 4), dtype="float16") = R.sum(x, axis=[1])
#             b: R.Tensor((1, 4, 4), dtype="float16") = R.exp(a)
#             c: R.Tensor((1, 2, 3, 3), dtype="float16") = R.nn.max_pool2d(x, pool_size=[2, 2])
#             R.output(b, c)
#         return (b, c)
