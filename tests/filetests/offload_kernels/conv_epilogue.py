# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def first(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), padding=[1, 0])
            b = R.add(c, R.const([[[[1.0]], [[-2.0]]]], "float32"))
            r = R.nn.relu(b)
            R.output(r)
        return r

    @R.function
    def last(x: R.Tensor(("n", "w", 2), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv1d(x, R.const([[[0.5], [-1.0]], [[2.0], [1.0]]], "float32"), data_layout="NWC")
            s = R.add(x, c)
            t = R.maximum(s, R.const(0.0, "float32"))
            z = R.minimum(t, R.const(6.0, "float32"))
            R.output(z)
        return z

    @R.function
    def varying(x: R.Tensor(("n", 2, "h", 4), "float32"), w: R.Tensor((2, 2, 1, 1), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, w)
            R.output(c)
        return c

    @R.function
    def phases(x: R.Tensor(("n", 4, "w"), "float32"), w: R.Tensor((4, 1, 3), "float32"), b: R.Tensor((2, 1), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv1d_transpose(x, w, strides=2, groups=2)
            s = R.add(b, c)
            R.output(s)
        return s

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 2, 16), "float32", "AAAAPwAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgL8AAIA/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
#         I.tensor((1, 2, 16), "float32", "AAAAPwAAAEAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAgL8AAIA/AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def first(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         cls = Module
#         with R.dataflow():
#             r: R.Tensor((n, 2, h + 2, 4), dtype="float32") = R.call_tir(cls.conv2d_packed, (x, metadata["relax.expr.Constant"][0], R.const([1.0, -2.0], "float32")), out_sinfo=R.Tensor((n, 2, h + 2, 4), dtype="float32"))
#             R.output(r)
#         return r
#
#     @R.function
#     def last(x: R.Tensor(("n", "w", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         w = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, w, 2), dtype="float32") = R.call_tir(cls.conv1d_packed, (x, metadata["relax.expr.Constant"][1], x), out_sinfo=R.Tensor((n, w, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def varying(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), w: R.Tensor((2, 2, 1, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((n, 2, h, 4), dtype="float32") = R.call_tir(cls.conv2d_packed1, (x, w), out_sinfo=R.Tensor((n, 2, h, 4), dtype="float32"))
#             R.output(c)
#         return c
#
#     @R.function
#     def phases(x: R.Tensor(("n", 4, "w"), dtype="float32"), w1: R.Tensor((4, 1, 3), dtype="float32"), b: R.Tensor((2, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n, 2, w * 2 + 1), dtype="float32") = R.nn.conv1d_transpose(x, w1, strides=[2], groups=2)
#             s: R.Tensor((n, 2, w * 2 + 1), dtype="float32") = R.add(b, c)
#             R.output(s)
#         return s
#
#     @T.prim_func(private=True)
#     def conv2d_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), C: T.Buffer((2,), "float32"), var_conv2d_packed: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         h = T.int64()
#         A = T.match_buffer(var_A, (n, 2, h, 4), "float32")
#         conv2d_packed = T.match_buffer(var_conv2d_packed, (n, 2, h + 1 + 1, 4), "float32")
#         with T.block("conv2d_packed"):
#             T.evaluate(T.call_kernel("conv", x=T.view(A, [n, 2, 1, h, 4], strides=[4 * h * 2, 4 * h, 0, 4, 1]), weight=T.view(B, [32], strides=[1]), bias=C, out=T.view(conv2d_packed, [n, 2, 1, h + 1 + 1, 4], strides=[4 * (h + 1 + 1) * 2, 4 * (h + 1 + 1), 0, 4, 1]), kernel_shape=[1, 1, 1], padding=[0, 1, 0], panel_width=16, activation="relu"))
#
#     @T.prim_func(private=True)
#     def conv1d_packed(var_A: T.handle, B: T.Buffer((1, 2, 16), "float32"), var_C: T.handle, var_conv1d_packed: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         w = T.int64()
#         A = T.match_buffer(var_A, (n, w, 2), "float32")
#         C = T.match_buffer(var_C, (n, w, 2), "float32")
#         conv1d_packed = T.match_buffer(var_conv1d_packed, (n, w + -1 + 1, 2), "float32")
#         with T.block("conv1d_packed"):
#             T.evaluate(T.call_kernel("conv", x=T.view(A, [n, 2, 1, 1, w], strides=[2 * w, 1, 0, 0, 2]), weight=T.view(B, [32], strides=[1]), residual=T.view(C, [n, 2, 1, 1, w], strides=[2 * w, 1, 0, 0, 2]), out=T.view(conv1d_packed, [n, 2, 1, 1, w + -1 + 1], strides=[2 * (w + -1 + 1), 1, 0, 0, 2]), kernel_shape=[1, 1, 1], panel_width=16, activation="clip", high=T.float64(6.0)))
#
#     @T.prim_func(private=True)
#     def conv2d_packed1(var_A: T.handle, B: T.Buffer((2, 2, 1, 1), "float32"), var_conv2d_packed: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         h = T.int64()
#         A = T.match_buffer(var_A, (n, 2, h, 4), "float32")
#         conv2d_packed = T.match_buffer(var_conv2d_packed, (n, 2, h + -1 + 1, 4), "float32")
#         with T.block("conv2d_packed"):
#             panels = T.decl_buffer((1, 2, 16), "float32", scope="local")
#             for part in T.parallel(1):
#                 first: T.int64 = part * 2
#                 for c, i0, i1 in T.grid(2, 1, 1):
#                     row: T.int64 = (i0 + i1) * 2 + c
#                     for f in range(2):
#                         panels[part, row, f] = B[first + f, c, i0, i1]
#                     for z in range(14):
#                         panels[part, row, 2 + z] = T.float32(0.0)
#             T.evaluate(T.call_kernel("conv", x=T.view(A, [n, 2, 1, h, 4], strides=[4 * h * 2, 4 * h, 0, 4, 1]), weight=T.view(panels, [32], strides=[1]), out=T.view(conv2d_packed, [n, 2, 1, h + -1 + 1, 4], strides=[4 * (h + -1 + 1) * 2, 4 * (h + -1 + 1), 0, 4, 1]), kernel_shape=[1, 1, 1], panel_width=16))
