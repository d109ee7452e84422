# A bias, a residual and an activation become the epilogue of a convolution.
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
#         I.tensor((1, 2, 16), "float32", [[[0.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0]]]),
#         I.tensor((1, 2, 16), "float32", [[[0.5, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def first(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             r: R.Tensor((n, 2, h + 2, 4), dtype="float32") = R.call_kernel("conv", x=x, weight=metadata["relax.expr.Constant"][0], bias=R.const([1.0, -2.0], "float32"), axes={"x": [0, 1, -1, 2, 3], "out": [0, 1, -1, 2, 3]}, kernel_shape=[1, 1, 1], padding=[0, 1, 0], panel_width=16, activation="relu", out_sinfo=R.Tensor((n, 2, h + 2, 4), dtype="float32"))
#             R.output(r)
#         return r
#
#     @R.function
#     def last(x: R.Tensor(("n", "w", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             z: R.Tensor((n, w, 2), dtype="float32") = R.call_kernel("conv", x=x, weight=metadata["relax.expr.Constant"][1], residual=x, axes={"x": [0, 2, -1, -1, 1], "residual": [0, 2, -1, -1, 1], "out": [0, 2, -1, -1, 1]}, kernel_shape=[1, 1, 1], panel_width=16, activation="clip", high=6.0, out_sinfo=R.Tensor((n, w, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def varying(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), w: R.Tensor((2, 2, 1, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((1, 2, 16), dtype="float32") = R.call_tir(cls.pack_conv_weights, (w,), out_sinfo=R.Tensor((1, 2, 16), dtype="float32"))
#             c: R.Tensor((n, 2, h, 4), dtype="float32") = R.call_kernel("conv", x=x, weight=lv, axes={"x": [0, 1, -1, 2, 3], "out": [0, 1, -1, 2, 3]}, kernel_shape=[1, 1, 1], panel_width=16, out_sinfo=R.Tensor((n, 2, h, 4), dtype="float32"))
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
#     def pack_conv_weights(A: T.Buffer((2, 2, 1, 1), "float32"), packed: T.Buffer((1, 2, 16), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("packed"):
#             for part in T.parallel(1):
#                 first: T.int64 = part * 2
#                 for c, i0, i1 in T.grid(2, 1, 1):
#                     row: T.int64 = (i0 + i1) * 2 + c
#                     for f in range(2):
#                         packed[part, row, f] = A[first + f, c, i0, i1]
#                     for z in range(14):
#                         packed[part, row, 2 + z] = T.float32(0.0)
