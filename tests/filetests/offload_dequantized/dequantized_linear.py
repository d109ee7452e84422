# Linear layers with dequantized constant weights become weight-only kernel calls.
# test opt --passes=OffloadDequantized

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def linear(x: R.Tensor(("n", 2), "float32"), b: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            w = R.dequantize(R.const([[1, -70], [2, 8], [3, 9]], "int8"), R.const([0.5, 1.0, 2.0], "float32"), R.const(0, "int8"), axis=0)
            y = R.linear(x, w, b)
            R.output(y)
        return y

    @R.function
    def twice_transposed(x: R.Tensor(("n", 3), "float32")) -> R.Object:
        with R.dataflow():
            w = R.dequantize(R.const([[1, -70], [2, 8], [3, 9]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
            t = R.permute_dims(w)
            y = R.linear(x, t)
            R.output(y)
        return y

    @R.function
    def part_of_a_block(x: R.Tensor(("n", 10), "float32")) -> R.Object:
        with R.dataflow():
            w = R.astype(R.const([[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]], "int8"), "float32")
            s = R.strided_slice(R.repeat(R.const([[0.5], [2.0]], "float32"), 8, axis=0), [0], [0], [10])
            y = R.matmul(x, R.multiply(w, s))
            R.output(y)
        return y

    @R.function
    def one_of_several(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        with R.dataflow():
            w = R.astype(R.const([[1, 2], [3, 40]], "int8"), "float32")
            s = R.strided_slice(R.const([[0.5, 1.0], [2.0, 3.0]], "float32"), [0], [0], [1])
            y = R.matmul(x, R.multiply(w, s))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 2, 16), "int8", [[[1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [-70, 8, 9, 0, 0,
#             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]),
#         I.tensor((1, 3, 16), "int8", [[[1, -70, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [2, 8, 0, 0, 0,
#             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [3, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]),
#         I.tensor((1, 5, 16), "uint8", [[[16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [50, 0, 0, 0, 0,
#             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [84, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [118, 0, 0, 0,
#             0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], [152, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]]),
#         I.tensor((1, 2, 16), "float32", [[[0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]),
#         I.tensor((1, 2, 16), "float32", [[[-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def linear(x: R.Tensor(("n", 2), dtype="float32"), b: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((3, 2), dtype="float32") = R.dequantize(R.const([[1, -70], [2, 8], [3, 9]], "int8"), R.const([0.5, 1.0, 2.0], "float32"), R.const(0, "int8"), axis=0)
#             lv: R.Tensor((n, 3), dtype="float32") = R.call_kernel("matmul_int8_weight", x=x, weight=metadata["relax.expr.Constant"][0], scales=R.const([[[0.5, 1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=2, out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             y: R.Tensor((n, 3), dtype="float32") = R.add(lv, b)
#             R.output(y)
#         return y
#
#     @R.function
#     def twice_transposed(x: R.Tensor(("n", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((3, 2), dtype="float32") = R.dequantize(R.const([[1, -70], [2, 8], [3, 9]], "int8"), R.const(0.5, "float32"), R.const(0, "int8"))
#             t: R.Tensor((2, 3), dtype="float32") = R.permute_dims(w)
#             y: R.Tensor((n, 2), dtype="float32") = R.call_kernel("matmul_int8_weight", x=x, weight=metadata["relax.expr.Constant"][1], scales=R.const([[[0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]], "float32"), group=3, out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def part_of_a_block(x: R.Tensor(("n", 10), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((10, 1), dtype="float32") = R.astype(R.const([[1], [2], [3], [4], [5], [6], [7], [8], [9], [10]], "int8"), dtype="float32")
#             lv: R.Tensor((16, 1), dtype="float32") = R.repeat(R.const([[0.5], [2.0]], "float32"), repeats=8, axis=0)
#             s: R.Tensor((10, 1), dtype="float32") = R.strided_slice(lv, R.shape([0]), R.shape([0]), R.shape([10]))
#             lv1: R.Tensor((10, 1), dtype="float32") = R.multiply(w, s)
#             y: R.Tensor((n, 1), dtype="float32") = R.call_kernel("matmul_int4_weight", x=x, weight=metadata["relax.expr.Constant"][2], scales=metadata["relax.expr.Constant"][3], zeros=metadata["relax.expr.Constant"][4], group=8, out_sinfo=R.Tensor((n, 1), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def one_of_several(x: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="float32") = R.astype(R.const([[1, 2], [3, 40]], "int8"), dtype="float32")
#             s: R.Tensor((1, 2), dtype="float32") = R.strided_slice(R.const([[0.5, 1.0], [2.0, 3.0]], "float32"), R.shape([0]), R.shape([0]), R.shape([1]))
#             lv: R.Tensor((2, 2), dtype="float32") = R.multiply(w, s)
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(x, lv)
#             R.output(y)
#         return y
