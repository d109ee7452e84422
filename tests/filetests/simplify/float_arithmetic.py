# Float arithmetic is not folded, not even a product by 1 or a sum of constants: `x + 0` is not `x` for -0.0, and `x - x` is not 0
# for infinity.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        B[0] = A[0] * T.float32(1) + T.float32(0)
        B[1] = A[1] * T.float32(0)
        B[2] = A[2] - A[2]
        B[3] = (T.float32(2) + T.float32(3)) * A[3]

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         B[0] = A[0] * T.float32(1.0) + T.float32(0.0)
#         B[1] = A[1] * T.float32(0.0)
#         B[2] = A[2] - A[2]
#         B[3] = (T.float32(2.0) + T.float32(3.0)) * A[3]
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return gv
