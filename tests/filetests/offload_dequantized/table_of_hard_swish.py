# An activation of a quantized tensor, which reads the dequantized value twice, becomes a table of 256 results.
# test opt --passes=OffloadDequantized,DeadCodeElimination

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
#         I.tensor((256,), "uint8", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
#             19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
#             44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68,
#             69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93,
#             94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114,
#             115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, 128, 129, 130, 131, 132, 133, 134,
#             135, 136, 137, 138, 139, 140, 141, 142, 143, 144, 145, 146, 147, 148, 149, 150, 151, 152, 153, 154,
#             155, 156, 157, 158, 159, 160, 161, 162, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 174,
#             175, 176, 177, 178, 179, 180, 181, 182, 183, 184, 185, 186, 187, 188, 189, 190, 191, 192, 193, 194,
#             195, 196, 197, 198, 199, 200, 201, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 212, 213, 214,
#             215, 216, 217, 218, 219, 220, 221, 222, 223, 224, 225, 226, 227, 228, 229, 230, 231, 232, 233, 234,
#             235, 236, 237, 238, 239, 240, 241, 242, 243, 244, 245, 246, 247, 248, 249, 250, 251, 252, 253, 254,
#             255]),
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
