# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The loop inside 'grow' is over 'grow' itself, whose size k differs from turn to turn and from call to call.
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def more(y: R.Tensor(ndim=1, dtype="int64"), i: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            return R.greater(i, R.const(0, "int64"))

        @R.function
        def grow(y: R.Tensor(("k",), "int64"), i: R.Tensor((), "int64")) -> R.Tuple(
            R.Tensor(ndim=1, dtype="int64"), R.Tensor((), "int64")
        ):
            k = T.int64()
            z = R.while_loop(more, grow, y, R.subtract(i, R.const(1, "int64")))
            return (R.concat([z[0], y]), z[1])

        z = grow(x, R.const(3, "int64"))
        return z[0]
