# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def plain(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

    @R.function
    def read_twice(x: R.Tensor(("n", "n"), "float32")) -> R.Object:
        with R.dataflow():
            lv = R.matmul(x, x)
            y = R.add(lv, R.permute_dims(lv))
            R.output(y)
        return y

    @R.function
    def integers(x: R.Tensor(("b", "n", "k"), "int32"), w: R.Tensor(("b", "m", "k"), "int32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[0, 2, 1]))
            R.output(y)
        return y

    @R.function
    def sizes_to_check(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("b", "m", "l"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[0, 2, 1]))
            R.output(y)
        return y

    @R.function
    def with_bias(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32"), c: R.Tensor(("m",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.linear(x, w, c), axes=[2, 1, 0])
            R.output(y)
        return y
