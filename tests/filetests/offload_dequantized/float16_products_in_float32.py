# Matmuls, linear layers and convolutions of 16-bit floats are computed in float32 and rounded once.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def product(x: R.Tensor(("n", 2), "float16"), w: R.Tensor((2, "m"), "float16")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

    @R.function
    def by_a_constant(x: R.Tensor(("n", 2), "bfloat16")) -> R.Object:
        with R.dataflow():
            w = R.const([[1.0, 2.0], [3.0, 4.0]], "bfloat16")
            y = R.linear(x, w, R.const([1.0, -1.0], "bfloat16"))
            R.output(y)
        return y

    @R.function
    def as_float32(x: R.Tensor(("n", 2), "float16"), w: R.Tensor((2, 3), "float16")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w, out_dtype="float32")
            R.output(y)
        return y

    @R.function
    def wide_bias(x: R.Tensor(("n", 2), "float16"), w: R.Tensor((3, 2), "float16"), b: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            y = R.linear(x, w, b, out_dtype="float32")
            R.output(y)
        return y

    @R.function
    def convolution(x: R.Tensor(("n", 2, "h", "w"), "float16"), w: R.Tensor((4, 2, 3, 3), "float16")) -> R.Object:
        with R.dataflow():
            y = R.nn.conv2d(x, w, padding=[1, 1])
            R.output(y)
        return y

    @R.function
    def float32_stays(x: R.Tensor(("n", 2), "float32"), w: R.Tensor((2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def product(x: R.Tensor(("n", 2), dtype="float16"), w: R.Tensor((2, "m"), dtype="float16")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((2, m), dtype="float32") = R.astype(w, dtype="float32")
#             lv2: R.Tensor((n, m), dtype="float32") = R.matmul(lv, lv1)
#             y: R.Tensor((n, m), dtype="float16") = R.astype(lv2, dtype="float16")
#             R.output(y)
#         return y
#
#     @R.function
#     def by_a_constant(x: R.Tensor(("n", 2), dtype="bfloat16")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="bfloat16") = R.const([[1.0, 2.0], [3.0, 4.0]], "bfloat16")
#             lv: R.Tensor((n, 2), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((2, 2), dtype="float32") = R.astype(w, dtype="float32")
#             lv2: R.Tensor((2,), dtype="float32") = R.astype(R.const([1.0, -1.0], "bfloat16"), dtype="float32")
#             lv3: R.Tensor((n, 2), dtype="float32") = R.linear(lv, lv1, lv2)
#             y: R.Tensor((n, 2), dtype="bfloat16") = R.astype(lv3, dtype="bfloat16")
#             R.output(y)
#         return y
#
#     @R.function
#     def as_float32(x: R.Tensor(("n", 2), dtype="float16"), w: R.Tensor((2, 3), dtype="float16")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((2, 3), dtype="float32") = R.astype(w, dtype="float32")
#             y: R.Tensor((n, 3), dtype="float32") = R.matmul(lv, lv1, out_dtype="float32")
#             R.output(y)
#         return y
#
#     @R.function
#     def wide_bias(x: R.Tensor(("n", 2), dtype="float16"), w: R.Tensor((3, 2), dtype="float16"), b: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((3, 2), dtype="float32") = R.astype(w, dtype="float32")
#             y: R.Tensor((n, 3), dtype="float32") = R.linear(lv, lv1, b, out_dtype="float32")
#             R.output(y)
#         return y
#
#     @R.function
#     def convolution(x: R.Tensor(("n", 2, "h", "w"), dtype="float16"), w1: R.Tensor((4, 2, 3, 3), dtype="float16")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2, h, w), dtype="float32") = R.astype(x, dtype="float32")
#             lv1: R.Tensor((4, 2, 3, 3), dtype="float32") = R.astype(w1, dtype="float32")
#             lv2: R.Tensor((n, 4, h, w), dtype="float32") = R.nn.conv2d(lv, lv1, padding=[1, 1, 1, 1])
#             y: R.Tensor((n, 4, h, w), dtype="float16") = R.astype(lv2, dtype="float16")
#             R.output(y)
#         return y
#
#     @R.function
#     def float32_stays(x: R.Tensor(("n", 2), dtype="float32"), w: R.Tensor((2, 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 3), dtype="float32") = R.matmul(x, w)
#             R.output(y)
#         return y
