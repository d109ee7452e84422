# Constant conditions remove a branch, loops of no iteration disappear, and a loop of one iteration leaves its body. A condition
# on variables stays, although it always holds.
# test opt --passes=Simplify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            copy: T.int64 = i
            if 2 > 1:
                B[i] = A[copy]
            else:
                B[i] = T.float32(0)
            for k in range(3, 4):
                B[i] = T.Select(k - 3 == k, T.float32(2), B[i] + T.float32(1))
            if i < n:
                B[i] = B[i] * T.float32(2)
        for j in range(0):
            B[j] = T.float32(3)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def f(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         for i in range(n):
#             B[i] = A[i]
#             B[i] = B[i] + T.float32(1.0)
#             if i < n:
#                 B[i] = B[i] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
