# Reductions at sizes from 0 on: all axes, one axis, a negative axis, and dims that are kept.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Object:
        n = T.int64()
        a = R.reshape(R.arange(n * 2, dtype="int64"), R.shape([n, 2]))
        return (R.sum(a), R.sum(a, axis=[0]), R.max(a, axis=[-1], keepdims=True))

    @R.function
    def moments(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1.0, 2.0, 3.0], [4.0, 8.0, 12.0]], "float32")
        x = R.where(c, a, a)
        return (R.mean(x), R.variance(x, axis=[1]), R.std(x, axis=[1]), R.prod(x, axis=[0]))

# expect
# main at n=0: (Tensor([], int64) [0.0000], Tensor([2], int64) [0.0000, 0.0000], Tensor([0, 1], int64) [])
# main at n=1: (Tensor([], int64) [1.0000], Tensor([2], int64) [0.0000, 1.0000], Tensor([1, 1], int64) [1.0000])
# main at n=2: (Tensor([], int64) [6.0000], Tensor([2], int64) [2.0000, 4.0000], Tensor([2, 1], int64) [1.0000, 3.0000])
# main at n=3: (Tensor([], int64) [15.0000], Tensor([2], int64) [6.0000, 9.0000], Tensor([3, 1], int64) [1.0000, 3.0000, 5.0000])
# main at n=7: (Tensor([], int64) [91.0000], Tensor([2], int64) [42.0000, 49.0000], Tensor([7, 1], int64) [1.0000, 3.0000, 5.0000, 7.0000, 9.0000, 11.0000, ... sum 49.000])
# main at n=8: (Tensor([], int64) [120.0000], Tensor([2], int64) [56.0000, 64.0000], Tensor([8, 1], int64) [1.0000, 3.0000, 5.0000, 7.0000, 9.0000, 11.0000, ... sum 64.000])
# main at n=31: (Tensor([], int64) [1891.0000], Tensor([2], int64) [930.0000, 961.0000], Tensor([31, 1], int64) [1.0000, 3.0000, 5.0000, 7.0000, 9.0000, 11.0000, ... sum 961.000])
# main at n=64: (Tensor([], int64) [8128.0000], Tensor([2], int64) [4032.0000, 4096.0000], Tensor([64, 1], int64) [1.0000, 3.0000, 5.0000, 7.0000, 9.0000, 11.0000, ... sum 4096.000])
# moments: (Tensor([], float32) [5.0000], Tensor([2], float32) [0.6667, 10.6667], Tensor([2], float32) [0.8165, 3.2660], Tensor([3], float32) [4.0000, 16.0000, 36.0000])
