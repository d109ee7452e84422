# Sums of integers and of half-precision floats keep their product.
# test opt --passes=ContractProducts

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def integers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]

    @T.prim_func(private=True)
    def halves(A: T.Buffer((8,), "float16"), C: T.Buffer((8,), "float16")):
        T.func_attr({"tir.is_scheduled": True})
        for i in range(8):
            C[i] = C[i] + A[i] * A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def integers(A: T.Buffer((8,), "int32"), C: T.Buffer((8,), "int32")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(8):
#             C[i] = C[i] + A[i] * A[i]
#
#     @T.prim_func(private=True)
#     def halves(A: T.Buffer((8,), "float16"), C: T.Buffer((8,), "float16")):
#         T.func_attr({"tir.is_scheduled": True})
#         for i in range(8):
#             C[i] = C[i] + A[i] * A[i]
