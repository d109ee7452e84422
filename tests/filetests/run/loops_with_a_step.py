# Loops of loop functions count in steps, up and down; elements outside the range keep their values.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def every_third(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int64")
        B = T.match_buffer(b, (n,), "int64")
        for i in range(n):
            B[i] = T.int64(0)
        for i in range(1, n, 3):
            B[i] = A[i] + i
        for i in T.serial(n - 1, -1, step=-4):
            B[i] = B[i] - i
        for i in range(9, 3, -2):
            if i < n:
                B[i] = B[i] * T.int64(2)

    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.every_third, (x,), out_sinfo=R.Tensor((n,), "int64"))

# expect
# main at n=0: Tensor([0], int64) []
# main at n=1: Tensor([1], int64) [0.0000]
# main at n=2: Tensor([2], int64) [0.0000, 1.0000]
# main at n=3: Tensor([3], int64) [0.0000, 1.0000, -2.0000]
# main at n=7: Tensor([7], int64) [0.0000, 1.0000, -2.0000, 0.0000, 5.0000, 0.0000, ... sum -2.000]
# main at n=8: Tensor([8], int64) [0.0000, 2.0000, 0.0000, -3.0000, 7.0000, 0.0000, ... sum 6.000]
# main at n=31: Tensor([31], int64) [0.0000, 1.0000, -2.0000, 0.0000, 6.0000, 0.0000, ... sum 41.000]
# main at n=64: Tensor([64], int64) [0.0000, 2.0000, 0.0000, -3.0000, 6.0000, 0.0000, ... sum 160.000]
