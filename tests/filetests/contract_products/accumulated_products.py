# A float product that is added to an element of the result becomes a fused multiply-add, on either side of the sum.
# test opt --passes=ContractProducts

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float64"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float64")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]
            D[i] = B[i] * B[i] + D[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def sums(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float64"), C: T.Buffer((8,), "float32"), D: T.Buffer((8,), "float64")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(8):
#             C[i] = T.fma(A[i], A[i], C[i])
#             D[i] = T.fma(B[i], B[i], D[i])
