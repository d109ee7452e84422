# Accesses that are provably inside need no assertion: whole loops, neighbours behind a condition, and clamped indices.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def differences(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            B[i] = A[i]
            if i > 0:
                B[i] = B[i] - A[i - 1]
            B[i] = B[i] + A[T.min(i + 5, n - 1)]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.differences, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def differences(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         for i in range(n):
#             B[i] = A[i]
#             if i > 0:
#                 B[i] = B[i] - A[i - 1]
#             B[i] = B[i] + A[T.min(i + 5, n - 1)]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.differences, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
