# Matmuls of dequantized operands with per-tensor, per-row and per-column scales become integer matmuls.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def one_scale(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
            w = R.dequantize(R.const([[1, -2, 3], [4, 5, -6]], "int8"), R.const([0.5, 2.0, 1.0], "float32"), R.const([0, 1, -1], "int8"))
            y = R.matmul(a, w)
            R.output(y)
        return y

    @R.function
    def rows(x: R.Tensor(("n", 2), "uint8"), s: R.Tensor(("n",), "float32"), z: R.Tensor(("n",), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, s, z, axis=0)
            w = R.dequantize(R.const([[1, -2], [3, 4], [5, 6]], "int8"), R.const([0.5, 2.0, 1.0], "float32"), R.const(0, "int8"), axis=0)
            y = R.linear(a, w, R.const([1.0, 2.0, 3.0], "float32"))
            R.output(y)
        return y

    @R.function
    def written(x: R.Tensor(("b", "n", 2), "int8"), s: R.Tensor((), "float32")) -> R.Object:
        with R.dataflow():
            a = R.multiply(s, R.astype(R.subtract(R.astype(x, "int32"), R.const(-3, "int32")), "float32"))
            w = R.multiply(R.astype(R.const([[1, 2], [3, 4]], "int8"), "float32"), R.const(0.5, "float32"))
            y = R.matmul(a, w)
            R.output(y)
        return y

    @R.function
    def bias_that_a_run_checks(x: R.Tensor((1, 2), "int8"), b: R.Tensor(("m", 2), "float32")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
            y = R.linear(a, w, b)
            R.output(y)
        return y

    @R.function
    def large_scale(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(1e30, "float32"), R.const(0, "int8"))
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
            y = R.matmul(a, w)
            R.output(y)
        return y

    @R.function
    def along_the_sum(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const([0.5, 0.25], "float32"), R.const(0, "int8"))
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
            y = R.matmul(a, w)
            R.output(y)
        return y

    @R.function
    def changes(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), R.const(0, "int8"))
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const([0.5, 1.0], "float32"), R.const(0, "int8"), axis=0)
            y = R.matmul(a, w)
            R.output(y)
        return y

    @R.function
    def unknown_zero(x: R.Tensor(("n", 2), "int8"), z: R.Tensor((), "int32")) -> R.Object:
        with R.dataflow():
            a = R.dequantize(x, R.const(0.5, "float32"), z)
            w = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
            y = R.matmul(a, w)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def one_scale(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
#             w: R.Tensor((2, 3), dtype="float32") = R.dequantize(R.const([[1, -2, 3], [4, 5, -6]], "int8"), R.const([0.5, 2.0, 1.0], "float32"), R.const([0, 1, -1], "int8"))
#             lv: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv1: R.Tensor((n, 2), dtype="int32") = R.subtract(lv, R.const(3, "int32"))
#             lv2: R.Tensor((n, 3), dtype="int32") = R.matmul(lv1, R.const([[1, -3, 4], [4, 4, -5]], "int32"))
#             lv3: R.Tensor((n, 3), dtype="float32") = R.astype(lv2, dtype="float32")
#             lv4: R.Tensor((n, 3), dtype="float32") = R.multiply(lv3, R.const(0.5, "float32"))
#             y: R.Tensor((n, 3), dtype="float32") = R.multiply(lv4, R.const([0.5, 2.0, 1.0], "float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def rows(x: R.Tensor(("n", 2), dtype="uint8"), s: R.Tensor(("n",), dtype="float32"), z: R.Tensor(("n",), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, s, z, axis=0)
#             w: R.Tensor((3, 2), dtype="float32") = R.dequantize(R.const([[1, -2], [3, 4], [5, 6]], "int8"), R.const([0.5, 2.0, 1.0], "float32"), R.const(0, "int8"), axis=0)
#             lv: R.Tensor((n,), dtype="int32") = R.astype(z, dtype="int32")
#             lv1: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv2: R.Tensor((n, 1), dtype="int32") = R.expand_dims(lv, axis=[1])
#             lv3: R.Tensor((n, 2), dtype="int32") = R.subtract(lv1, lv2)
#             lv4: R.Tensor((n, 3), dtype="int32") = R.matmul(lv3, R.const([[1, 3, 5], [-2, 4, 6]], "int32"))
#             lv5: R.Tensor((n, 3), dtype="float32") = R.astype(lv4, dtype="float32")
#             lv6: R.Tensor((n, 1), dtype="float32") = R.expand_dims(s, axis=[1])
#             lv7: R.Tensor((n, 3), dtype="float32") = R.multiply(lv5, lv6)
#             lv8: R.Tensor((n, 3), dtype="float32") = R.multiply(lv7, R.const([0.5, 2.0, 1.0], "float32"))
#             y: R.Tensor((n, 3), dtype="float32") = R.add(lv8, R.const([1.0, 2.0, 3.0], "float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def written(x: R.Tensor(("b", "n", 2), dtype="int8"), s: R.Tensor((), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv1: R.Tensor((b, n, 2), dtype="int32") = R.subtract(lv, R.const(-3, "int32"))
#             lv2: R.Tensor((b, n, 2), dtype="float32") = R.astype(lv1, dtype="float32")
#             a: R.Tensor((b, n, 2), dtype="float32") = R.multiply(s, lv2)
#             lv3: R.Tensor((2, 2), dtype="float32") = R.astype(R.const([[1, 2], [3, 4]], "int8"), dtype="float32")
#             w: R.Tensor((2, 2), dtype="float32") = R.multiply(lv3, R.const(0.5, "float32"))
#             lv4: R.Tensor((b, n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             lv5: R.Tensor((b, n, 2), dtype="int32") = R.subtract(lv4, R.const(-3, "int32"))
#             lv6: R.Tensor((b, n, 2), dtype="int32") = R.matmul(lv5, R.const([[1, 2], [3, 4]], "int32"))
#             lv7: R.Tensor((b, n, 2), dtype="float32") = R.astype(lv6, dtype="float32")
#             lv8: R.Tensor((b, n, 2), dtype="float32") = R.multiply(lv7, s)
#             y: R.Tensor((b, n, 2), dtype="float32") = R.multiply(lv8, R.const([0.5, 0.5], "float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def bias_that_a_run_checks(x: R.Tensor((1, 2), dtype="int8"), b: R.Tensor(("m", 2), dtype="float32")) -> R.Object:
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((1, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(3, "int8"))
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
#             y: R.Tensor((1, 2), dtype="float32") = R.linear(a, w, b)
#             R.output(y)
#         return y
#
#     @R.function
#     def large_scale(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const(1e30, "float32"), R.const(0, "int8"))
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
#             y: R.Tensor((n, 2), dtype="float32") = R.call_kernel("matmul_int4_weight", x=a, weight=R.const([[[32, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def along_the_sum(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const([0.5, 0.25], "float32"), R.const(0, "int8"))
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
#             y: R.Tensor((n, 2), dtype="float32") = R.call_kernel("matmul_int4_weight", x=a, weight=R.const([[[32, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def changes(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), R.const(0, "int8"))
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const([0.5, 1.0], "float32"), R.const(0, "int8"), axis=0)
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(a, w)
#             R.output(y)
#         return y
#
#     @R.function
#     def unknown_zero(x: R.Tensor(("n", 2), dtype="int8"), z: R.Tensor((), dtype="int32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.dequantize(x, R.const(0.5, "float32"), z)
#             w: R.Tensor((2, 2), dtype="float32") = R.dequantize(R.const([[1, 2], [3, 4]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
#             y: R.Tensor((n, 2), dtype="float32") = R.call_kernel("matmul_int4_weight", x=a, weight=R.const([[[32, 49, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]], "uint8"), scales=R.const([[[0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), zeros=R.const([[[-1.0, -1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(y)
#         return y
