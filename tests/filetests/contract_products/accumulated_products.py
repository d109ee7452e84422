# Only products that are added to the result itself are contracted, for floats in scheduled functions.
# test opt --passes=ContractProducts

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scheduled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            C[i] = C[i] + A[i] * B[i]
            C[i] = A[i] * B[i] + C[i]
            C[i] = A[i] * B[i] + B[i]

    @T.prim_func(private=True)
    def integers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]

    @T.prim_func(private=True)
    def not_scheduled(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def scheduled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(8):
#             C[i] = T.fma(A[i], B[i], C[i])
#             C[i] = T.fma(A[i], B[i], C[i])
#             C[i] = A[i] * B[i] + B[i]
#
#     @T.prim_func(private=True)
#     def integers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(8):
#             C[i] = C[i] + A[i] * A[i]
#
#     @T.prim_func(private=True)
#     def not_scheduled(A: T.Buffer((8,), "float32"), C: T.Buffer((8,), "float32")):
#         for i in range(8):
#             C[i] = C[i] + A[i] * A[i]
