# Consecutive elements become one access of 8 lanes, and a scalar is broadcast.
# test opt --passes=FlattenBuffer,VectorizeLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def scale(A: T.Buffer((4, 8), "float32"), s: T.Buffer((), "float32"), B: T.Buffer((4, 8), "float32")):
        for i in range(4):
            for j in T.vectorized(8):
                B[i, j] = T.exp(A[i, j]) * s[()] + T.float32(1)

    @R.function
    def main(x: R.Tensor((4, 8), "float32"), s: R.Tensor((), "float32")) -> R.Tensor((4, 8), "float32"):
        cls = Module
        return R.call_tir(cls.scale, (x, s), out_sinfo=R.Tensor((4, 8), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def scale(A: T.Buffer((4, 8), "float32"), s: T.Buffer((), "float32"), B: T.Buffer((4, 8), "float32")):
#         T.func_attr({"tir.flat": True})
#         for i in range(4):
#             B[T.Ramp(i * 8, 1, 8)] = T.exp(A[T.Ramp(i * 8, 1, 8)]) * T.Broadcast(s[0], 8) + T.Broadcast(T.float32(1.0), 8)
#
#     @R.function
#     def main(x: R.Tensor((4, 8), dtype="float32"), s: R.Tensor((), dtype="float32")) -> R.Tensor((4, 8), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4, 8), dtype="float32") = R.call_tir(cls.scale, (x, s), out_sinfo=R.Tensor((4, 8), dtype="float32"))
#         return gv
