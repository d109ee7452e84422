# A block without a reduction axis runs its init in each iteration, so the init is an ordinary statement.
# test print

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def init(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = A[vi]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def init(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = T.float32(0.0)
#                 B[vi] = A[vi]
