# A while loop in a loop function, whose number of iterations depends on the data.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def collatz(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int64")
        B = T.match_buffer(b, (n,), "int64")
        for i in T.parallel(n):
            x = T.alloc_buffer((1,), "int64", scope="local")
            x[0] = A[i] + 1
            B[i] = 0
            while x[0] > 1:
                if x[0] % 2 == 0:
                    x[0] = x[0] // 2
                else:
                    x[0] = x[0] * 3 + 1
                B[i] = B[i] + 1

    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.collatz, (x,), out_sinfo=R.Tensor((n,), "int64"))

# expect
# main at n=0: Tensor([0], int64) []
# main at n=1: Tensor([1], int64) [7.0000]
# main at n=2: Tensor([2], int64) [1.0000, 1.0000]
# main at n=3: Tensor([3], int64) [7.0000, 0.0000, 2.0000]
# main at n=7: Tensor([7], int64) [7.0000, 0.0000, 2.0000, 1.0000, 1.0000, 0.0000, ... sum 12.000]
# main at n=8: Tensor([8], int64) [0.0000, 1.0000, 7.0000, 0.0000, 2.0000, 0.0000, ... sum 10.000]
# main at n=31: Tensor([31], int64) [2.0000, 0.0000, 7.0000, 2.0000, 7.0000, 1.0000, ... sum 75.000]
# main at n=64: Tensor([64], int64) [7.0000, 1.0000, 1.0000, 0.0000, 7.0000, 0.0000, ... sum 150.000]
