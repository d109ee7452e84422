# A result that does not have the declared type: another rank, data type or constant size, and a tuple of another length.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def rank(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(ndim=1, dtype="float32"):  # error: PL0107 declared to return a value of type R.Tensor(dtype="float32", ndim=1), but returns a value of type R.Tensor((n, 2), dtype="float32")
        return R.exp(x)

    @R.function
    def dtype(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float16"):  # error: PL0107 but returns a value of type R.Tensor((n,), dtype="float32")
        return R.exp(x)

    @R.function
    def size(x: R.Tensor((3,), "float32")) -> R.Tensor((4,), "float32"):  # error: PL0107 but returns a value of type R.Tensor((3,), dtype="float32")
        return R.exp(x)

    @R.function
    def length(x: R.Tensor((3,), "float32")) -> R.Tuple(R.Tensor((3,), "float32"), R.Tensor((3,), "float32")):  # error: PL0107 but returns a value of type R.Tuple(R.Tensor((3,), dtype="float32"), R.Tensor((3,), dtype="float32"), R.Tensor((3,), dtype="float32"))
        return (x, x, x)

    # Sizes that may be equal are checked at run time.
    @R.function
    def may_be_equal(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        return x
