# A shape and a scalar computed from symbolic sizes are returned as values.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n, m, k = T.int64(), T.int64(), T.int64()
        y = R.match_cast(x, R.Tensor((n, k), "float32"))
        s = R.shape([n * k, (n + k) // 2, T.max(n, k)])
        return (R.reshape(y, R.shape([n * m])), s, R.prim_value(n - k))

# expect
# main at n=0 m=3 k=31: (Tensor([0], float32) [], Shape[0, 1, 3], -3)
# main at n=1 m=7 k=64: (Tensor([7], float32) [-0.5625, 1.6250, -0.4375, -0.0312, 1.6719, -1.3906, ... sum -0.594], Shape[7, 4, 7], -6)
# main at n=2 m=8 k=0: (Tensor([16], float32) [-0.9688, 0.3281, 0.7969, -0.1562, -1.0781, 1.1875, ... sum 3.516], Shape[16, 5, 8], -6)
# main at n=3 m=31 k=1: (Tensor([93], float32) [-1.4062, -1.9688, 0.9844, 1.9375, -0.9844, 1.1719, ... sum 8.578], Shape[93, 17, 31], -28)
# main at n=7 m=64 k=2: (Tensor([448], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum 49.328], Shape[448, 35, 64], -57)
# main at n=8 m=0 k=3: (Tensor([0], float32) [], Shape[0, 4, 8], 8)
# main at n=31 m=1 k=7: (Tensor([31], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 1.703], Shape[31, 16, 31], 30)
# main at n=64 m=2 k=8: (Tensor([128], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 7.922], Shape[128, 33, 64], 62)
