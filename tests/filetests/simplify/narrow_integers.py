# Only 64-bit arithmetic is folded: that of 32 bits stays, whether or not it wraps around.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
        B[0] = A[0] + (T.int32(2147483647) + T.int32(1))
        B[1] = A[1] * (T.int32(65536) * T.int32(65536))
        B[2] = A[2] * T.int32(1)

    @R.function
    def main(x: R.Tensor((3,), "int32")) -> R.Tensor((3,), "int32"):
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((3,), "int32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((3,), "int32"), B: T.Buffer((3,), "int32")):
#         B[0] = A[0] + (T.int32(2147483647) + T.int32(1))
#         B[1] = A[1] * (T.int32(65536) * T.int32(65536))
#         B[2] = A[2] * T.int32(1)
#
#     @R.function
#     def main(x: R.Tensor((3,), dtype="int32")) -> R.Tensor((3,), dtype="int32"):
#         cls = Module
#         gv: R.Tensor((3,), dtype="int32") = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((3,), dtype="int32"))
#         return gv
