# Bounds of slices are clamped as in Python, count from the end if negative, and steps may be negative.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        a = R.arange(n, dtype="int64")
        middle = R.strided_slice(a, axes=[0], begin=[1], end=[3])
        last = R.strided_slice(a, axes=[0], begin=[-2], end=[100])
        backwards = R.strided_slice(a, axes=[0], begin=[-1], end=[-100], strides=[-2])
        none = R.strided_slice(a, axes=[0], begin=[3], end=[1])
        return (middle, last, backwards, none)

# expect
# main at n=0: (Tensor([0], int64) [], Tensor([0], int64) [], Tensor([0], int64) [], Tensor([0], int64) [])
# main at n=1: (Tensor([0], int64) [], Tensor([1], int64) [0.0000], Tensor([1], int64) [0.0000], Tensor([0], int64) [])
# main at n=2: (Tensor([1], int64) [1.0000], Tensor([2], int64) [0.0000, 1.0000], Tensor([1], int64) [1.0000], Tensor([0], int64) [])
# main at n=3: (Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [2.0000, 0.0000], Tensor([0], int64) [])
# main at n=7: (Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [5.0000, 6.0000], Tensor([4], int64) [6.0000, 4.0000, 2.0000, 0.0000], Tensor([0], int64) [])
# main at n=8: (Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [6.0000, 7.0000], Tensor([4], int64) [7.0000, 5.0000, 3.0000, 1.0000], Tensor([0], int64) [])
# main at n=31: (Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [29.0000, 30.0000], Tensor([16], int64) [30.0000, 28.0000, 26.0000, 24.0000, 22.0000, 20.0000, ... sum 240.000], Tensor([0], int64) [])
# main at n=64: (Tensor([2], int64) [1.0000, 2.0000], Tensor([2], int64) [62.0000, 63.0000], Tensor([32], int64) [63.0000, 61.0000, 59.0000, 57.0000, 55.0000, 53.0000, ... sum 1024.000], Tensor([0], int64) [])
