# Global functions that call themselves and each other.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Global functions call themselves and each other.
    @R.function
    def sum_to(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        if R.less(i, R.const(1, "int64")):
            return i
        return R.add(i, cls.sum_to(R.subtract(i, R.const(1, "int64"))))

    @R.function
    def ping(x: R.Tensor(ndim=1, dtype="int64"), i: R.Tensor((), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        cls = Module
        if R.less(i, R.const(1, "int64")):
            r = x
        else:
            r = cls.pong(R.concat([x, x]), R.subtract(i, R.const(1, "int64")))
        return r

    @R.function
    def pong(x: R.Tensor(ndim=1, dtype="int64"), i: R.Tensor((), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        cls = Module
        if R.less(i, R.const(1, "int64")):
            r = R.negative(x)
        else:
            r = cls.ping(x, R.subtract(i, R.const(1, "int64")))
        return r

    # Recursion on a size.
    @R.function
    def halves(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        cls = Module
        if n <= 1:
            return R.sum(x)
        first = R.strided_slice(x, axes=[0], begin=[0], end=[n // 2])
        return R.add(cls.halves(first), R.const(1, "int64"))

# expect
# sum_to: Tensor([], int64) [1.0000]
# ping: Tensor([0], int64) []
# pong: Tensor([0], int64) []
# halves at n=0 n=3: Tensor([], int64) [0.0000]
# halves at n=1 n=7: Tensor([], int64) [2.0000]
# halves at n=2 n=8: Tensor([], int64) [2.0000]
# halves at n=3 n=31: Tensor([], int64) [3.0000]
# halves at n=7 n=64: Tensor([], int64) [4.0000]
# halves at n=8 n=0: Tensor([], int64) [3.0000]
# halves at n=31 n=1: Tensor([], int64) [7.0000]
# halves at n=64 n=2: Tensor([], int64) [8.0000]
