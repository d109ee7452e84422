# test opt --passes=PackIntegerConvolutions

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
