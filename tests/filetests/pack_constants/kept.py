# test opt --passes=PackConstants

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
