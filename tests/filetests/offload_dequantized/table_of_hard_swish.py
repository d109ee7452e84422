# test opt --passes=OffloadDequantized,DeadCodeElimination
# An activation of a quantized tensor, which reads the dequantized value twice, becomes a table of 256 results.

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "float32")
            b = R.subtract(a, R.const(120.0, "float32"))
            c = R.multiply(b, R.const(0.02, "float32"))
            g = R.clip(R.add(c, R.const(3.0, "float32")), 0, 6)
            h = R.multiply(c, g)
            r = R.round(R.multiply(h, R.const(9.0, "float32")))
            k = R.clip(r, 0, 255)
            y = R.astype(k, "uint8")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((256,), "uint8", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+P0BBQkNERUZHSElKS0xNTk9QUVJTVFVWV1hZWltcXV5fYGFiY2RlZmdoaWprbG1ub3BxcnN0dXZ3eHl6e3x9fn+AgYKDhIWGh4iJiouMjY6PkJGSk5SVlpeYmZqbnJ2en6ChoqOkpaanqKmqq6ytrq+wsbKztLW2t7i5uru8vb6/wMHCw8TFxsfIycrLzM3Oz9DR0tPU1dbX2Nna29zd3t/g4eLj5OXm5+jp6uvs7e7v8PHy8/T19vf4+fr7/P3+/w=="),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv2: R.Tensor((256,), dtype="float32") = R.astype(metadata["relax.expr.Constant"][0], dtype="float32")
#             lv3: R.Tensor((256,), dtype="float32") = R.subtract(lv2, R.const(120.0, "float32"))
#             lv4: R.Tensor((256,), dtype="float32") = R.multiply(lv3, R.const(0.02, "float32"))
#             lv5: R.Tensor((256,), dtype="float32") = R.add(lv4, R.const(3.0, "float32"))
#             lv6: R.Tensor((256,), dtype="float32") = R.clip(lv5, R.const(0.0, "float32"), R.const(6.0, "float32"))
#             lv7: R.Tensor((256,), dtype="float32") = R.multiply(lv4, lv6)
#             lv8: R.Tensor((256,), dtype="float32") = R.multiply(lv7, R.const(9.0, "float32"))
#             lv9: R.Tensor((256,), dtype="float32") = R.round(lv8)
#             lv10: R.Tensor((256,), dtype="float32") = R.clip(lv9, R.const(0.0, "float32"), R.const(255.0, "float32"))
#             lv11: R.Tensor((256,), dtype="uint8") = R.astype(lv10, dtype="uint8")
#             lv12: R.Tensor((256,), dtype="uint8") = R.reshape(lv11, R.shape([256]))
#             y: R.Tensor((n, 3), dtype="uint8") = R.call_kernel("lookup", x=x, table=lv12, out_sinfo=R.Tensor((n, 3), dtype="uint8"))
#             R.output(y)
#         return y
