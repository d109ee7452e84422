"""Loop functions that several tests of schedules transform."""

from pliant.script import tir as T


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int64(), T.int64(), T.int64()
    A = T.match_buffer(a, (n, k), "float32")
    B = T.match_buffer(b, (k, m), "float32")
    C = T.match_buffer(c, (n, m), "float32")
    for i, j, l in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, l])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
