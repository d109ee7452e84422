# Casts between types of different widths keep the number of lanes; comparisons give vectors of bools.
# test opt --passes=FlattenBuffer,VectorizeLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def casts(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "bool")):
        for j in T.vectorized(8):
            B[j] = T.Cast("float32", A[j]) * T.float32(0.5)
        for j in T.vectorized(8):
            C[j] = A[j] < T.Cast("int8", j)

    @R.function
    def main(x: R.Tensor((8,), "int8")) -> R.Object:
        cls = Module
        t = R.call_tir(cls.casts, (x,), out_sinfo=[R.Tensor((8,), "float32"), R.Tensor((8,), "bool")])
        return t

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def casts(A: T.Buffer((8,), "int8"), B: T.Buffer((8,), "float32"), C: T.Buffer((8,), "bool")):
#         T.func_attr({"tir.flat": True})
#         B[T.Ramp(0, 1, 8)] = T.Cast("float32x8", A[T.Ramp(0, 1, 8)]) * T.Broadcast(T.float32(0.5), 8)
#         C[T.Ramp(0, 1, 8)] = A[T.Ramp(0, 1, 8)] < T.Cast("int8x8", T.Ramp(0, 1, 8))
#
#     @R.function
#     def main(x: R.Tensor((8,), dtype="int8")) -> R.Object:
#         cls = Module
#         t: R.Tuple(R.Tensor((8,), dtype="float32"), R.Tensor((8,), dtype="bool")) = R.call_tir(cls.casts, (x,), out_sinfo=[R.Tensor((8,), dtype="float32"), R.Tensor((8,), dtype="bool")])
#         return t
