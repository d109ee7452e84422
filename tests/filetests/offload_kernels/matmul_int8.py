# Int32 matmuls of 8-bit operands by constants become int8 kernel calls, unless a column spans more than 8 bits.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def plain(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.const([[1, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32")
            R.output(y)
        return y

    @R.function
    def shifted(x: R.Tensor(("n", "m", 2), "uint8"), z: R.Tensor((), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            b = R.astype(z, "int32")
            c = R.subtract(a, b)
            y = R.matmul(c, R.const([[1, 200, 3], [4, -5, -6]], "int32"))
            R.output(y)
        return y

    @R.function
    def rows(x: R.Tensor(("n", 2), "int8"), z: R.Tensor(("n", 1), "int32")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            c = R.subtract(a, z)
            y = R.matmul(c, R.const([[1, 2], [3, 4]], "int32"))
            R.output(y)
        return y

    @R.function
    def wide(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            y = R.matmul(a, R.const([[1, 2], [3, 400]], "int32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [77, -128, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0,
#             0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0,
#             0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 3, 0, 0], [2, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0,
#             0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0,
#             0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def plain(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 3), dtype="int32") = R.call_tir(cls.matmul_int8, (x, metadata["relax.expr.Constant"][0], R.const([5, 3, -3], "int32")), out_sinfo=R.Tensor((n, 3), dtype="int32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def shifted(x: R.Tensor(("n", "m", 2), dtype="uint8"), z: R.Tensor((), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, m, 2), dtype="int32") = R.astype(x, dtype="int32")
#             b: R.Tensor((), dtype="int32") = R.astype(z, dtype="int32")
#             c: R.Tensor((n, m, 2), dtype="int32") = R.subtract(a, b)
#             y: R.Tensor((n, m, 3), dtype="int32") = R.call_tir(cls.matmul_int81, (x, b, metadata["relax.expr.Constant"][1], R.const([5, -51, -3], "int32"), R.const([0, -123, 0], "int32")), out_sinfo=R.Tensor((n, m, 3), dtype="int32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def rows(x: R.Tensor(("n", 2), dtype="int8"), z: R.Tensor(("n", 1), dtype="int32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             c: R.Tensor((n, 2), dtype="int32") = R.subtract(a, z)
#             y: R.Tensor((n, 2), dtype="int32") = R.call_tir(cls.matmul_int82, (x, z, metadata["relax.expr.Constant"][2], R.const([4, 6], "int32")), out_sinfo=R.Tensor((n, 2), dtype="int32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def wide(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             y: R.Tensor((n, 2), dtype="int32") = R.matmul(a, R.const([[1, 2], [3, 400]], "int32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def matmul_int8(var_A: T.handle, B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "int8")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 3), "int32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, out=matmul_int8))
#
#     @T.prim_func(private=True)
#     def matmul_int81(var_A: T.handle, B: T.Buffer((), "int32"), C: T.Buffer((1, 1, 16, 4), "int8"), D: T.Buffer((3,), "int32"), E: T.Buffer((3,), "int32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m, 2), "uint8")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, m, 3), "int32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, x_zeros=T.view(B, [n * m], strides=[0]), weight=C, column_sums=D, weight_zeros=E, out=matmul_int8))
#
#     @T.prim_func(private=True)
#     def matmul_int82(var_A: T.handle, var_B: T.handle, C: T.Buffer((1, 1, 16, 4), "int8"), D: T.Buffer((2,), "int32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "int8")
#         B = T.match_buffer(var_B, (n, 1), "int32")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 2), "int32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, x_zeros=T.view(B, [n], strides=[1]), weight=C, column_sums=D, out=matmul_int8))
