# Operators in a dataflow block, and in a branch whose condition depends on a sum.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.softmax(y, axis=-1)
            s = R.sum(z, axis=[0])
            R.output(z, s)
        return (z, s)

    @R.function
    def branch(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        c = R.less(R.sum(x), R.const(6, "int64"))
        if c:
            y = R.add(x, x)
        else:
            y = R.negative(x)
        return y

# expect
# main at n=0 m=3: (Tensor([0, 3], float32) [], Tensor([3], float32) [0.0000, 0.0000, 0.0000])
# main at n=1 m=7: (Tensor([1, 3], float32) [0.9979, 0.0001, 0.0020], Tensor([3], float32) [0.9979, 0.0001, 0.0020])
# main at n=2 m=8: (Tensor([2, 3], float32) [0.5112, 0.4852, 0.0037, 0.2369, 0.4802, 0.2829], Tensor([3], float32) [0.7481, 0.9654, 0.2866])
# main at n=3 m=31: (Tensor([3, 3], float32) [0.9914, 0.0086, 0.0000, 0.0001, 0.0000, 0.9999, ... sum 3.000], Tensor([3], float32) [1.9814, 0.0086, 1.0100])
# main at n=7 m=64: (Tensor([7, 3], float32) [0.3887, 0.6113, 0.0000, 0.0155, 0.9845, 0.0000, ... sum 7.000], Tensor([3], float32) [3.3973, 3.5972, 0.0054])
# main at n=8 m=0: (Tensor([8, 3], float32) [0.3333, 0.3333, 0.3333, 0.3333, 0.3333, 0.3333, ... sum 8.000], Tensor([3], float32) [2.6667, 2.6667, 2.6667])
# main at n=31 m=1: (Tensor([31, 3], float32) [0.2615, 0.6986, 0.0399, 0.1562, 0.0676, 0.7762, ... sum 31.000], Tensor([3], float32) [7.7134, 10.5751, 12.7115])
# main at n=64 m=2: (Tensor([64, 3], float32) [0.0726, 0.0647, 0.8627, 0.1544, 0.8296, 0.0161, ... sum 64.000], Tensor([3], float32) [18.4501, 19.2423, 26.3076])
# branch at n=0: Tensor([0], int64) []
# branch at n=1: Tensor([1], int64) [4.0000]
# branch at n=2: Tensor([2], int64) [2.0000, 2.0000]
# branch at n=3: Tensor([3], int64) [4.0000, 0.0000, 6.0000]
# branch at n=7: Tensor([7], int64) [-2.0000, 0.0000, -3.0000, -1.0000, -1.0000, 0.0000, ... sum -8.000]
# branch at n=8: Tensor([8], int64) [0.0000, -1.0000, -2.0000, 0.0000, -3.0000, 0.0000, ... sum -6.000]
# branch at n=31: Tensor([31], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -49.000]
# branch at n=64: Tensor([64], int64) [-2.0000, -1.0000, -1.0000, 0.0000, -2.0000, 0.0000, ... sum -90.000]
