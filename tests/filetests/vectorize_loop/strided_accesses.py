# Strided and reversed reads are ramps with another step; loaded indices are a vector of indices.
# test opt --passes=FlattenBuffer,VectorizeLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def strided(A: T.Buffer((8, 4), "float32"), J: T.Buffer((8,), "int64"), B: T.Buffer((3, 8), "float32")):
        for j in T.vectorized(8):
            B[0, j] = A[j, 1]
        for j in T.vectorized(8):
            B[1, j] = A[7 - j, 0]
        for j in T.vectorized(8):
            B[2, j] = A[T.min(T.max(J[j], 0), 7), 2]

    @R.function
    def main(x: R.Tensor((8, 4), "float32"), j: R.Tensor((8,), "int64")) -> R.Tensor((3, 8), "float32"):
        cls = Module
        return R.call_tir(cls.strided, (x, j), out_sinfo=R.Tensor((3, 8), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def strided(A: T.Buffer((8, 4), "float32"), J: T.Buffer((8,), "int64"), B: T.Buffer((3, 8), "float32")):
#         T.func_attr({"tir.flat": True})
#         B[T.Ramp(0, 1, 8)] = A[T.Ramp(1, 4, 8)]
#         B[T.Ramp(1 * 8, 1, 8)] = A[T.Ramp((7 - 0) * 4, -4, 8)]
#         B[T.Ramp(2 * 8, 1, 8)] = A[T.min(T.max(J[T.Ramp(0, 1, 8)], T.Broadcast(0, 8)), T.Broadcast(7, 8)) * T.Broadcast(4, 8) + T.Broadcast(2, 8)]
#
#     @R.function
#     def main(x: R.Tensor((8, 4), dtype="float32"), j: R.Tensor((8,), dtype="int64")) -> R.Tensor((3, 8), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((3, 8), dtype="float32") = R.call_tir(cls.strided, (x, j), out_sinfo=R.Tensor((3, 8), dtype="float32"))
#         return gv
