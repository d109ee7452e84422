# Scales, a bias and an activation become the epilogue of an int8 matmul, if they come in the order that the kernel supports.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def layer(x: R.Tensor(("n", 2), "int8"), s: R.Tensor((), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, R.const([[1, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32")
            b = R.astype(a, "float32")
            c = R.multiply(b, s)
            d = R.multiply(c, R.const([0.5, 2.0, 1.0], "float32"))
            e = R.add(R.const([1.0, 2.0, 3.0], "float32"), d)
            y = R.nn.relu(e)
            R.output(y)
        return y

    @R.function
    def rows(x: R.Tensor(("n", 2), "uint8"), s: R.Tensor(("n", 1), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(R.astype(x, "int32"), R.const([[1, -2, 3], [4, 5, -6]], "int32"))
            b = R.astype(a, "float32")
            c = R.multiply(b, s)
            d = R.maximum(c, R.const(-1.0, "float32"))
            y = R.minimum(d, R.const(6.0, "float32"))
            R.output(y)
        return y

    @R.function
    def factors_out_of_order(x: R.Tensor(("n", 2), "int8"), s: R.Tensor((), "float32"), t: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, R.const([[1, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32")
            b = R.multiply(R.astype(a, "float32"), t)
            y = R.multiply(b, s)
            R.output(y)
        return y

    @R.function
    def read_twice(x: R.Tensor(("n", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.matmul(x, R.const([[1, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32")
            b = R.astype(a, "float32")
            R.output(a, b)
        return (a, b)

    @R.function
    def sum_of_two(x: R.Tensor((1, 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(R.matmul(x, R.const([[1, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32"), "float32")
            b = R.astype(R.matmul(x, R.const([[7, -2, 3], [4, 5, -6]], "int8"), out_dtype="int32"), "float32")
            y = R.add(a, b)
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
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[7, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 4, 0, 0], [-2, 5, 0, 0], [3, -6, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0,
#             0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def layer(x: R.Tensor(("n", 2), dtype="int8"), s: R.Tensor((), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.matmul_int8, (x, metadata["relax.expr.Constant"][0], R.const([5, 3, -3], "int32"), s, R.const([0.5, 2.0, 1.0], "float32"), R.const([1.0, 2.0, 3.0], "float32")), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def rows(x: R.Tensor(("n", 2), dtype="uint8"), s: R.Tensor(("n", 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, 2), dtype="int32") = R.astype(x, dtype="int32")
#             y: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.matmul_int81, (x, metadata["relax.expr.Constant"][1], R.const([5, 3, -3], "int32"), s), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def factors_out_of_order(x: R.Tensor(("n", 2), dtype="int8"), s: R.Tensor((), dtype="float32"), t: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.matmul_int82, (x, metadata["relax.expr.Constant"][2], R.const([5, 3, -3], "int32"), t), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             y: R.Tensor((n, 3), dtype="float32") = R.multiply(b, s)
#             R.output(y)
#         return y
#
#     @R.function
#     def read_twice(x: R.Tensor(("n", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 3), dtype="int32") = R.call_tir(cls.matmul_int83, (x, metadata["relax.expr.Constant"][3], R.const([5, 3, -3], "int32")), out_sinfo=R.Tensor((n, 3), dtype="int32"))
#             b: R.Tensor((n, 3), dtype="float32") = R.astype(a, dtype="float32")
#             R.output(a, b)
#         return (a, b)
#
#     @R.function
#     def sum_of_two(x: R.Tensor((1, 2), dtype="int8")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((1, 3), dtype="float32") = R.call_tir(cls.matmul_int85, (x, metadata["relax.expr.Constant"][4], R.const([11, 3, -3], "int32")), out_sinfo=R.Tensor((1, 3), dtype="float32"))
#             y: R.Tensor((1, 3), dtype="float32") = R.call_tir(cls.matmul_int84, (x, metadata["relax.expr.Constant"][5], R.const([5, 3, -3], "int32"), b), out_sinfo=R.Tensor((1, 3), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def matmul_int8(var_A: T.handle, B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), D: T.Buffer((), "float32"), E: T.Buffer((3,), "float32"), F: T.Buffer((3,), "float32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "int8")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 3), "float32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, row_scales=T.view(D, [n], strides=[0]), column_scales=E, bias=F, out=matmul_int8, activation="relu"))
#
#     @T.prim_func(private=True)
#     def matmul_int81(var_A: T.handle, B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), var_D: T.handle, var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "uint8")
#         D = T.match_buffer(var_D, (n, 1), "float32")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 3), "float32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, row_scales=T.view(D, [n], strides=[1]), out=matmul_int8, activation="clip", low=T.float64(-1.0), high=T.float64(6.0)))
#
#     @T.prim_func(private=True)
#     def matmul_int82(var_A: T.handle, B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), D: T.Buffer((3,), "float32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "int8")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 3), "float32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, column_scales=D, out=matmul_int8))
#
#     @T.prim_func(private=True)
#     def matmul_int83(var_A: T.handle, B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), var_matmul_int8: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "int8")
#         matmul_int8 = T.match_buffer(var_matmul_int8, (n, 3), "int32")
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, out=matmul_int8))
#
#     @T.prim_func(private=True)
#     def matmul_int84(A: T.Buffer((1, 2), "int8"), B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), D: T.Buffer((1, 3), "float32"), matmul_int8: T.Buffer((1, 3), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, bias=T.view(D, [3], strides=[1]), out=matmul_int8))
#
#     @T.prim_func(private=True)
#     def matmul_int85(A: T.Buffer((1, 2), "int8"), B: T.Buffer((1, 1, 16, 4), "int8"), C: T.Buffer((3,), "int32"), matmul_int8: T.Buffer((1, 3), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("matmul_int8"):
#             T.evaluate(T.call_kernel("matmul_int8", x=A, weight=B, column_sums=C, out=matmul_int8))
