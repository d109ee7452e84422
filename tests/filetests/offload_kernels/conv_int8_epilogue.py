# Integer terms, scales, an activation and requantization become the epilogue of an int8 convolution.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def plain(x: R.Tensor(("n", "w", 2), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            y = R.nn.conv1d(a, R.const([[[1, -2], [3, 4]]], "int32"), padding=[0, 1], data_layout="NWC", out_layout="NWC")
            R.output(y)
        return y

    @R.function
    def finished(x: R.Tensor(("n", "h", 4, 2), "uint8"), s: R.Tensor((), "float32"), z: R.Tensor((), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            b = R.astype(z, "int32")
            c = R.subtract(a, b)
            y = R.nn.conv2d(c, R.const([[[[1]], [[200]]], [[[-3]], [[4]]]], "int32"), strides=2, padding=[1, 0], data_layout="NHWC", out_layout="NHWC")
            t = R.add(y, R.const([10, -20], "int32"))
            f = R.astype(t, "float32")
            g = R.multiply(f, s)
            h = R.multiply(g, R.const([0.5, 0.25], "float32"))
            i = R.nn.relu(h)
            j = R.divide(i, s)
            k = R.round(j)
            l = R.add(k, R.const(3.0, "float32"))
            m = R.maximum(l, R.const(-128.0, "float32"))
            o = R.minimum(m, R.const(127.0, "float32"))
            p = R.astype(o, "int8")
            R.output(p)
        return p

    @R.function
    def alone(x: R.Tensor(("n", "h", 4, 2), "uint8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            y = R.nn.conv2d(a, R.const([[[[1, 2]]], [[[-3, 4]]]], "int32"), groups=2, data_layout="NHWC", out_layout="NHWC")
            f = R.astype(y, "float32")
            g = R.round(f)
            R.output(g)
        return g

    @R.function
    def first(x: R.Tensor(("n", 2, "w"), "int8")) -> R.Object:
        with R.dataflow():
            a = R.astype(x, "int32")
            y = R.nn.conv1d(a, R.const([[[1, -2], [3, 4]]], "int32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 1, 16, 4), "int8", [[[[1, 3, -2, 4], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0,
#             0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0,
#             0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#         I.tensor((1, 1, 16, 4), "int8", [[[[-128, 71, 0, 0], [-3, 4, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0,
#             0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0,
#             0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def plain(x: R.Tensor(("n", "w", 2), dtype="int8")) -> R.Object:
#         n = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, w, 2), dtype="int32") = R.astype(x, dtype="int32")
#             y: R.Tensor((n, w, 1), dtype="int32") = R.call_kernel("conv_int8", x=x, weight=metadata["relax.expr.Constant"][0], filter_sums=R.const([6], "int32"), axes={"x": [0, -1, -1, 1, 2], "out": [0, -1, -1, 1, 2]}, kernel_shape=[1, 1, 2], panel_width=16, out_sinfo=R.Tensor((n, w, 1), dtype="int32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def finished(x: R.Tensor(("n", "h", 4, 2), dtype="uint8"), s: R.Tensor((), dtype="float32"), z: R.Tensor((), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, h, 4, 2), dtype="int32") = R.astype(x, dtype="int32")
#             b: R.Tensor((), dtype="int32") = R.astype(z, dtype="int32")
#             c: R.Tensor((n, h, 4, 2), dtype="int32") = R.subtract(a, b)
#             p: R.Tensor((n, (h + 1) // 2 + 1, 2, 2), dtype="int8") = R.call_kernel("conv_int8", x=x, x_zero=b, weight=metadata["relax.expr.Constant"][1], filter_sums=R.const([-57, 1], "int32"), weight_zeros=R.const([-129, 0], "int32"), terms=R.const([10, -20], "int32"), scale=s, filter_scales=R.const([0.5, 0.25], "float32"), out_scale=s, out_zero=R.const(3.0, "float32"), axes={"x": [0, -1, 1, 2, 3], "out": [0, -1, 1, 2, 3]}, kernel_shape=[1, 1, 1], strides=[1, 2, 2], padding=[0, 1, 0], panel_width=16, activation="relu", out_low=-128.0, out_high=127.0, out_sinfo=R.Tensor((n, (h + 1) // 2 + 1, 2, 2), dtype="int8"))
#             R.output(p)
#         return p
#
#     @R.function
#     def alone(x: R.Tensor(("n", "h", 4, 2), dtype="uint8")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, h, 4, 2), dtype="int32") = R.astype(x, dtype="int32")
#             f: R.Tensor((n, h, 3, 2), dtype="float32") = R.call_kernel("conv_int8", x=x, weight=R.const([[[[1], [-3]], [[2], [4]], [[0], [0]], [[0], [0]]]], "int8"), filter_sums=R.const([3, 1], "int32"), axes={"x": [0, -1, 1, 2, 3], "out": [0, -1, 1, 2, 3]}, kernel_shape=[1, 1, 2], groups=2, panel_width=1, out_sinfo=R.Tensor((n, h, 3, 2), dtype="float32"))
#             g: R.Tensor((n, h, 3, 2), dtype="float32") = R.round(f)
#             R.output(g)
#         return g
#
#     @R.function
#     def first(x: R.Tensor(("n", 2, "w"), dtype="int8")) -> R.Object:
#         n = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2, w), dtype="int32") = R.astype(x, dtype="int32")
#             y: R.Tensor((n, 1, w - 1), dtype="int32") = R.nn.conv1d(a, R.const([[[1, -2], [3, 4]]], "int32"))
#             R.output(y)
#         return y
