# The loop reads C[0], which is never written, so the pass clears C first. Before the pass, C[0] is undefined.
# test opt --passes=ClearScratch
# no-run: the first element is undefined before the pass

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def shifted(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n + 1,), "float32")
        C = T.alloc_buffer((n + 1,), "float32")
        for i in range(n):
            C[i + 1] = A[i]
        for i in range(n + 1):
            B[i] = C[i]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n + 1",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.shifted, (x,), out_sinfo=R.Tensor((n + 1,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def shifted(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n + 1,), "float32")
#         C = T.alloc_buffer((n + 1,), "float32")
#         for i0 in range(n + 1):
#             with T.block("C_clear"):
#                 v0 = T.axis.spatial(n + 1, i0)
#                 C[v0] = T.float32(0.0)
#         for i in range(n):
#             C[i + 1] = A[i]
#         for i in range(n + 1):
#             B[i] = C[i]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n + 1",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n + 1,), dtype="float32") = R.call_tir(cls.shifted, (x,), out_sinfo=R.Tensor((n + 1,), dtype="float32"))
#         return gv
