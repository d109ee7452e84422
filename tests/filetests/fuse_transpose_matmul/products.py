# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def matrix(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w))
            R.output(y)
        return y

    @R.function
    def left(x: R.Tensor(("k", "n"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(x), w)
            R.output(y)
        return y

    @R.function
    def both(x: R.Tensor(("k", "n"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(x), R.permute_dims(w))
            R.output(y)
        return y

    @R.function
    def heads(q: R.Tensor(("b", "n", 2, 3), "float32"), k: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(q, axes=[0, 2, 1, 3]), R.permute_dims(k, axes=[0, 2, 3, 1]))
            R.output(y)
        return y

    @R.function
    def result(p: R.Tensor(("b", 2, "n", "m"), "float32"), v: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            lv = R.matmul(p, R.permute_dims(v, axes=[0, 2, 1, 3]))
            y = R.permute_dims(lv, axes=[0, 2, 1, 3])
            R.output(y)
        return y

    @R.function
    def result_alone(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.matmul(x, w), axes=[1, 0])
            R.output(y)
        return y

    @R.function
    def result_by_rows(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.linear(x, w), axes=[2, 1, 0])
            R.output(y)
        return y

    @R.function
    def ranks_differ(x: R.Tensor(("c", "b", "n", "k"), "float32"), w: R.Tensor(("m", "b", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[1, 2, 0]))
            R.output(y)
        return y

    @R.function
    def vector(x: R.Tensor(("k",), "float32"), w: R.Tensor(("m", "b", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[1, 2, 0]))
            R.output(y)
        return y
