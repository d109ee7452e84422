# Values from memory may wrap around, so doubling and halving them is not the identity; it is for a loop variable.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((2,), "int64"), B: T.Buffer((2,), "int64"), C: T.Buffer((2,), "bool")):
        for i in range(2):
            B[i * 2 // 2] = A[i] * 2 // 2
            C[i] = A[i] + 1 > A[i]

    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        cls = Module
        v = R.const([3, 9223372036854775807], "int64")
        x = R.where(c, v, v)
        return R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((2,), "int64"), R.Tensor((2,), "bool")])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((2,), "int64"), B: T.Buffer((2,), "int64"), C: T.Buffer((2,), "bool")):
#         for i in range(2):
#             B[i] = A[i] * 2 // 2
#             C[i] = A[i] + 1 > A[i]
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool")) -> R.Object:
#         cls = Module
#         v: R.Tensor((2,), dtype="int64") = R.const([3, 9223372036854775807], "int64")
#         x: R.Tensor((2,), dtype="int64") = R.where(c, v, v)
#         gv: R.Tuple(R.Tensor((2,), dtype="int64"), R.Tensor((2,), dtype="bool")) = R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((2,), dtype="int64"), R.Tensor((2,), dtype="bool")])
#         return gv
