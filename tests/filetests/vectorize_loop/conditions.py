# A select of vectors is a vector. A branch, also a uniform one, and a select by the parity of the index make their loops serial.
# test opt --passes=FlattenBuffer,VectorizeLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def masked(A: T.Buffer((8,), "float32"), k: T.Buffer((), "int64"), B: T.Buffer((8,), "float32")):
        for j in T.vectorized(8):
            B[j] = T.float32(0)
        for j in T.vectorized(8):
            if j < 5:
                B[j] = A[j]
        for j in T.vectorized(8):
            B[j] = T.Select(j % 2 == 0, B[j], A[j])
        for j in T.vectorized(8):
            B[j] = T.Select(A[j] < T.float32(0), T.float32(1), B[j])
        for j in T.vectorized(8):
            if k[()] > 1:
                B[j] = B[j] + T.float32(1)

    @R.function
    def main(x: R.Tensor((8,), "float32"), k: R.Tensor((), "int64")) -> R.Tensor((8,), "float32"):
        cls = Module
        return R.call_tir(cls.masked, (x, k), out_sinfo=R.Tensor((8,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def masked(A: T.Buffer((8,), "float32"), k: T.Buffer((), "int64"), B: T.Buffer((8,), "float32")):
#         T.func_attr({"tir.flat": True})
#         B[T.Ramp(0, 1, 8)] = T.Broadcast(T.float32(0.0), 8)
#         for j in range(8):
#             if j < 5:
#                 B[j] = A[j]
#         for j in range(8):
#             B[j] = T.Select(j % 2 == 0, B[j], A[j])
#         B[T.Ramp(0, 1, 8)] = T.Select(A[T.Ramp(0, 1, 8)] < T.Broadcast(T.float32(0.0), 8), T.Broadcast(T.float32(1.0), 8), B[T.Ramp(0, 1, 8)])
#         for j in range(8):
#             if k[0] > 1:
#                 B[j] = B[j] + T.float32(1.0)
#
#     @R.function
#     def main(x: R.Tensor((8,), dtype="float32"), k: R.Tensor((), dtype="int64")) -> R.Tensor((8,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((8,), dtype="float32") = R.call_tir(cls.masked, (x, k), out_sinfo=R.Tensor((8,), dtype="float32"))
#         return gv
