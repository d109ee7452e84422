# Values of narrow integers wrap around, so doubling and halving is not the identity, and `x + 1 > x` is false for the largest
# number.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(A: T.Buffer((3,), "int8"), B: T.Buffer((3,), "int8"), C: T.Buffer((3,), "int8"), D: T.Buffer((3,), "bool"), E: T.Buffer((3,), "int8")):
        for i in range(3):
            B[i] = A[i] * T.int8(2) // T.int8(2)
            C[i] = (A[i] * T.int8(3) + T.int8(1)) % T.int8(3)
            D[i] = A[i] + T.int8(1) > A[i]
            E[i] = A[i] + T.int8(1) - A[i]

    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        cls = Module
        v = R.const([1, 100, 127], "int8")
        x = R.where(c, v, v)
        return R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((3,), "int8"), R.Tensor((3,), "int8"), R.Tensor((3,), "bool"), R.Tensor((3,), "int8")])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(A: T.Buffer((3,), "int8"), B: T.Buffer((3,), "int8"), C: T.Buffer((3,), "int8"), D: T.Buffer((3,), "bool"), E: T.Buffer((3,), "int8")):
#         for i in range(3):
#             B[i] = A[i] * T.int8(2) // T.int8(2)
#             C[i] = (A[i] * T.int8(3) + T.int8(1)) % T.int8(3)
#             D[i] = A[i] + T.int8(1) > A[i]
#             E[i] = A[i] + T.int8(1) - A[i]
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool")) -> R.Object:
#         cls = Module
#         v: R.Tensor((3,), dtype="int8") = R.const([1, 100, 127], "int8")
#         x: R.Tensor((3,), dtype="int8") = R.where(c, v, v)
#         gv: R.Tuple(R.Tensor((3,), dtype="int8"), R.Tensor((3,), dtype="int8"), R.Tensor((3,), dtype="bool"), R.Tensor((3,), dtype="int8")) = R.call_tir(cls.f, (x,), out_sinfo=[R.Tensor((3,), dtype="int8"), R.Tensor((3,), dtype="int8"), R.Tensor((3,), dtype="bool"), R.Tensor((3,), dtype="int8")])
#         return gv
