# A product that is added to another element or another buffer is rounded on its own.
# test opt --passes=ContractProducts

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(7):
            C[i] = A[i] * B[i] + B[i]
            C[i] = A[i] * B[i] + C[i + 1]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(7):
#             C[i] = A[i] * B[i] + B[i]
#             C[i] = A[i] * B[i] + C[i + 1]
