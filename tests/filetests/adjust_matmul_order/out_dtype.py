# A product with another result type than its operands keeps its place, since the intermediate result is rounded to it.
# test opt --passes=AdjustMatmulOrder

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((16, "n"), "float16"), y: R.Tensor(("n", 8), "float16"), v: R.Tensor((8,), "float32")) -> R.Tensor((16,), "float32"):
        with R.dataflow():
            a = R.matmul(x, y, out_dtype="float32")
            b = R.matmul(a, v)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((16, "n"), dtype="float16"), y: R.Tensor(("n", 8), dtype="float16"), v: R.Tensor((8,), dtype="float32")) -> R.Tensor((16,), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((16, 8), dtype="float32") = R.matmul(x, y, out_dtype="float32")
#             b: R.Tensor((16,), dtype="float32") = R.matmul(a, v)
#             R.output(b)
#         return b
