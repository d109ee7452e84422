# Between two products, the value is rounded and widened again: each operator rounds once.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "bfloat16"), w: R.Tensor((2, 2), "bfloat16")) -> R.Tensor(("n", 2), "bfloat16"):
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.matmul(y, w)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="bfloat16"), w: R.Tensor((2, 2), dtype="bfloat16")) -> R.Tensor(("n", 2), dtype="bfloat16"):
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((2, 2), dtype="float32") = R.astype(w, dtype="float32")
#             lv2: R.Tensor((n, 2), dtype="float32") = R.matmul(lv, lv1)
#             y: R.Tensor((n, 2), dtype="bfloat16") = R.astype(lv2, dtype="bfloat16")
#             lv3: R.Tensor((n, 2), dtype="float32") = R.astype(y, dtype="float32")
#             lv4: R.Tensor((2, 2), dtype="float32") = R.astype(w, dtype="float32")
#             lv5: R.Tensor((n, 2), dtype="float32") = R.matmul(lv3, lv4)
#             z: R.Tensor((n, 2), dtype="bfloat16") = R.astype(lv5, dtype="bfloat16")
#             R.output(z)
#         return z
