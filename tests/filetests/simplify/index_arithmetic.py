# Index arithmetic takes its normal form if that is smaller; neutral operands vanish. That `j` is below 4 is not used.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        B = T.match_buffer(b, (n, 4), "float32")
        for i in range(n):
            for j in range(4):
                B[(i * 4 + j) // 4 + 0 * i, (i * 4 + j) % 4] = A[i * (3 - 2), j % 4 + j // 4]

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n, 4), "float32")
#         B = T.match_buffer(b, (n, 4), "float32")
#         for i, j in T.grid(n, 4):
#             B[j // 4 + i, j % 4] = A[i, j % 4 + j // 4]
#
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#         return gv
