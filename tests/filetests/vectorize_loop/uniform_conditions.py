# A condition that is the same for all lanes guards the vector operations; one that reads memory makes the loop serial.
# test opt --passes=FlattenBuffer,VectorizeLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((8,), "float32"), k: T.Buffer((), "int64"), B: T.Buffer((8,), "float32"), n: T.int64):
        for j in T.vectorized(8):
            if n > 1:
                B[j] = A[j]
        for j in T.vectorized(8):
            if k[()] > 1:
                B[j] = A[j]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((8,), "float32"), k: T.Buffer((), "int64"), B: T.Buffer((8,), "float32"), n: T.int64):
#         T.func_attr({"tir.flat": True})
#         if n > 1:
#             B[T.Ramp(0, 1, 8)] = A[T.Ramp(0, 1, 8)]
#         for j in range(8):
#             if k[0] > 1:
#                 B[j] = A[j]
