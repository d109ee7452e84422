# Tables of int8 arguments list the negative arguments after the others; the scale may be a reshaped constant.
# test opt --passes=OffloadDequantized,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "float32")
            s = R.reshape(R.const([0.5], "float32"), R.shape([]))
            b = R.multiply(a, s)
            c = R.tanh(b)
            d = R.multiply(c, R.const(100.0, "float32"))
            y = R.astype(d, "int8")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((256,), "int8", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18,
#             19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
#             44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68,
#             69, 70, 71, 72, 73, 74, 75, 76, 77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92, 93,
#             94, 95, 96, 97, 98, 99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114,
#             115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 125, 126, 127, -128, -127, -126, -125, -124,
#             -123, -122, -121, -120, -119, -118, -117, -116, -115, -114, -113, -112, -111, -110, -109, -108,
#             -107, -106, -105, -104, -103, -102, -101, -100, -99, -98, -97, -96, -95, -94, -93, -92, -91, -90,
#             -89, -88, -87, -86, -85, -84, -83, -82, -81, -80, -79, -78, -77, -76, -75, -74, -73, -72, -71, -70,
#             -69, -68, -67, -66, -65, -64, -63, -62, -61, -60, -59, -58, -57, -56, -55, -54, -53, -52, -51, -50,
#             -49, -48, -47, -46, -45, -44, -43, -42, -41, -40, -39, -38, -37, -36, -35, -34, -33, -32, -31, -30,
#             -29, -28, -27, -26, -25, -24, -23, -22, -21, -20, -19, -18, -17, -16, -15, -14, -13, -12, -11, -10,
#             -9, -8, -7, -6, -5, -4, -3, -2, -1]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tensor((), dtype="float32") = R.reshape(R.const([0.5], "float32"), R.shape([]))
#             lv: R.Tensor((256,), dtype="float32") = R.astype(metadata["relax.expr.Constant"][0], dtype="float32")
#             lv1: R.Tensor((256,), dtype="float32") = R.multiply(lv, s)
#             lv2: R.Tensor((256,), dtype="float32") = R.tanh(lv1)
#             lv3: R.Tensor((256,), dtype="float32") = R.multiply(lv2, R.const(100.0, "float32"))
#             lv4: R.Tensor((256,), dtype="int8") = R.astype(lv3, dtype="int8")
#             lv5: R.Tensor((256,), dtype="int8") = R.reshape(lv4, R.shape([256]))
#             y: R.Tensor((n, 3), dtype="int8") = R.call_kernel("lookup", x=x, table=lv5, out_sinfo=R.Tensor((n, 3), dtype="int8"))
#             R.output(y)
#         return y
