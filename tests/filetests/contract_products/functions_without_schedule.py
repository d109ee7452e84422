# A function that no user has scheduled rounds its products as numpy does.
# test opt --passes=ContractProducts

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sums(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def sums(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
#         for i in range(8):
#             C[i] = C[i] + A[i] * A[i]
