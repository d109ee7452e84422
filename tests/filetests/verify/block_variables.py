# The body of a block reads its axes, not the loop variables around it, because passes rebuild the loops.
# test verify
# fails: PL0310 uses the loop variable 'i'

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def loop_variable(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[i]
