# A buffer that is written as a whole before it is read is not cleared.
# test opt --passes=ClearScratch

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def through(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        C = T.alloc_buffer((n,), "float32")
        for i in range(n):
            C[i] = A[i] * T.float32(2)
        for i in range(n):
            B[i] = C[n - 1 - i]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.through, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def through(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         C = T.alloc_buffer((n,), "float32")
#         for i in range(n):
#             C[i] = A[i] * T.float32(2.0)
#         for i in range(n):
#             B[i] = C[n - 1 - i]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.through, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
