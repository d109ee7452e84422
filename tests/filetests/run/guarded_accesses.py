# Guarded accesses are evaluated only if the guard holds.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def rises(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "int64")
        B = T.match_buffer(b, (n,), "int64")
        for i in range(n):
            B[i] = 0
            if i > 0 and A[i - 1] < A[i]:
                B[i] = 1
            if i == n - 1 or A[i + 1] < A[i]:
                B[i] = B[i] + 2

    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.rises, (x,), out_sinfo=R.Tensor((n,), "int64"))

# expect
# main at n=0: Tensor([0], int64) []
# main at n=1: Tensor([1], int64) [2.0000]
# main at n=2: Tensor([2], int64) [0.0000, 2.0000]
# main at n=3: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# main at n=7: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 0.0000, 2.0000, 0.0000, ... sum 10.000]
# main at n=8: Tensor([8], int64) [0.0000, 1.0000, 3.0000, 0.0000, 3.0000, 0.0000, ... sum 9.000]
# main at n=31: Tensor([31], int64) [2.0000, 0.0000, 1.0000, 3.0000, 2.0000, 0.0000, ... sum 40.000]
# main at n=64: Tensor([64], int64) [2.0000, 0.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 81.000]
