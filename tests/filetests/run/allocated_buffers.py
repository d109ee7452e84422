# Buffers whose sizes are variables: a constant, a value that depends on a loop, and a value in an unrolled loop.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            constant: T.int64 = 4
            few = T.alloc_buffer((constant,), "float32")
            few[3] = A[i]
            size: T.int64 = T.min(n, 3) + i
            some = T.alloc_buffer((size + 1,), "float32")
            for j in range(size + 1):
                some[j] = few[3]
            B[i] = some[size]
        for k in T.unroll(2):
            one = T.alloc_buffer((k + 1,), "float32")
            one[k] = T.float32(2)
            if n > k:
                B[k] = B[k] + one[k]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n,), "float32"))
            R.output(y)
        return y

# expect
# main at n=0: Tensor([0], float32) []
# main at n=1: Tensor([1], float32) [1.4375]
# main at n=2: Tensor([2], float32) [1.0312, 2.3281]
# main at n=3: Tensor([3], float32) [0.5938, 0.0312, 0.9844]
# main at n=7: Tensor([7], float32) [3.7500, 2.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum 1.438]
# main at n=8: Tensor([8], float32) [0.9688, 2.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 4.828]
# main at n=31: Tensor([31], float32) [0.2031, 3.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 5.703]
# main at n=64: Tensor([64], float32) [2.9688, 2.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 8.031]
