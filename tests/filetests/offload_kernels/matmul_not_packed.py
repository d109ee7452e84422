# Products with few columns, of integers, of unknown inner size, or with a constant left operand are not packed.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def narrow(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 3), "float32"):
        w = R.matmul(x, R.const([[2.0, 0.0, -4.0], [-2.0, -1.0, 1.0]], "float32"))
        return w

    @R.function
    def integers(x: R.Tensor(("n", 2), "int32")) -> R.Tensor(("n", 9), "int32"):
        w = R.matmul(x, R.const([[-2, 1, 2, -1, 0, -3, 2, 4, 1], [4, 3, 4, -1, -3, -4, -3, -2, -2]], "int32"))
        return w

    @R.function
    def unknown(x: R.Tensor(("n", "k"), "float32")) -> R.Tensor(("n", 9), "float32"):
        w = R.matmul(x, R.const([[-2.0, 4.0, -1.0, 0.0, 1.0, 4.0, 0.0, 1.0, 1.0], [1.0, -3.0, 0.0, -1.0, 3.0, -2.0, 4.0, -3.0, 1.0]], "float32"))
        return w

    @R.function
    def left(x: R.Tensor((9, "n"), "float32")) -> R.Tensor((2, "n"), "float32"):
        w = R.matmul(R.const([[-4.0, 2.0, -3.0, 2.0, -2.0, -2.0, 1.0, -3.0, 2.0], [-3.0, 4.0, -1.0, -3.0, 0.0, 1.0, 0.0, 4.0, -3.0]], "float32"), x)
        return w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((2, 9), "int32", [[-2, 1, 2, -1, 0, -3, 2, 4, 1], [4, 3, 4, -1, -3, -4, -3, -2, -2]]),
#         I.tensor((2, 9), "float32", [[-2.0, 4.0, -1.0, 0.0, 1.0, 4.0, 0.0, 1.0, 1.0], [1.0, -3.0, 0.0,
#             -1.0, 3.0, -2.0, 4.0, -3.0, 1.0]]),
#         I.tensor((2, 9), "float32", [[-4.0, 2.0, -3.0, 2.0, -2.0, -2.0, 1.0, -3.0, 2.0], [-3.0, 4.0,
#             -1.0, -3.0, 0.0, 1.0, 0.0, 4.0, -3.0]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def narrow(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         w: R.Tensor((n, 3), dtype="float32") = R.matmul(x, R.const([[2.0, 0.0, -4.0], [-2.0, -1.0, 1.0]], "float32"))
#         return w
#
#     @R.function
#     def integers(x: R.Tensor(("n", 2), dtype="int32")) -> R.Tensor(("n", 9), dtype="int32"):
#         n = T.int64()
#         w: R.Tensor((n, 9), dtype="int32") = R.matmul(x, metadata["relax.expr.Constant"][0])
#         return w
#
#     @R.function
#     def unknown(x: R.Tensor(("n", "k"), dtype="float32")) -> R.Tensor(("n", 9), dtype="float32"):
#         n = T.int64()
#         k = T.int64()
#         w: R.Tensor((n, 9), dtype="float32") = R.matmul(x, metadata["relax.expr.Constant"][1])
#         return w
#
#     @R.function
#     def left(x: R.Tensor((9, "n"), dtype="float32")) -> R.Tensor((2, "n"), dtype="float32"):
#         n = T.int64()
#         w: R.Tensor((2, n), dtype="float32") = R.matmul(metadata["relax.expr.Constant"][2], x)
#         return w
