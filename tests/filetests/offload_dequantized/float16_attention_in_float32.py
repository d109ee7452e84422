# Attention of 16-bit floats is computed in float32 and rounded once.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor((1, "n", 2, 8), "float16"), k: R.Tensor((1, "n", 2, 8), "float16"), v: R.Tensor((1, "n", 2, 8), "float16")) -> R.Object:
        with R.dataflow():
            y = R.nn.attention(q, k, v)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(q: R.Tensor((1, "n", 2, 8), dtype="float16"), k: R.Tensor((1, "n", 2, 8), dtype="float16"), v: R.Tensor((1, "n", 2, 8), dtype="float16")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((1, n, 2, 8), dtype="float32") = R.astype(q, dtype="float32")
#             lv1: R.Tensor((1, n, 2, 8), dtype="float32") = R.astype(k, dtype="float32")
#             lv2: R.Tensor((1, n, 2, 8), dtype="float32") = R.astype(v, dtype="float32")
#             lv3: R.Tensor((1, n, 2, 8), dtype="float32") = R.nn.attention(lv, lv1, lv2)
#             y: R.Tensor((1, n, 2, 8), dtype="float16") = R.astype(lv3, dtype="float16")
#             R.output(y)
#         return y
