# Indices and sizes are integers, and conditions are bools.
# test verify

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def index(A: T.Buffer((4,), "float32")):
        for i in range(4):
            A[A[i]] = T.float32(0)  # error: PL0107 an index or a size must be an integer, but has type float32

    @T.prim_func
    def extent(A: T.Buffer((4,), "float32")):
        for i in range(A[0]):  # error: PL0107
            A[i] = T.float32(0)

    @T.prim_func
    def condition(A: T.Buffer((4,), "float32")):
        for i in range(4):
            if A[i]:  # error: PL0107
                A[i] = T.float32(0)
