# A vectorized loop needs a constant extent, and the body of a block reads its axes, not the loop variables around it.
# test verify
# fails: PL0311 the vectorized loop over 'i' must have a constant extent
# fails: PL0310 uses the loop variable 'i'

from pliant.script import tir as T


@T.prim_func
def f(a: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n,), "float32")
    for i in T.vectorized(n):
        with T.block("b"):
            v = T.axis.spatial(n, i)
            A[v] = A[i]
