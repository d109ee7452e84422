# An index that is loaded from memory may have any value, so its access is asserted in each iteration.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def gather(a: T.handle, j: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        J = T.match_buffer(j, (m,), "int64")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            B[i] = A[J[i]]

    @R.function
    def main(x: R.Tensor(("n",), "float32"), i: R.Tensor(("m",), "int64")) -> R.Tensor(("m",), "float32"):
        m = T.int64()
        cls = Module
        return R.call_tir(cls.gather, (x, i), out_sinfo=R.Tensor((m,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def gather(a: T.handle, j: T.handle, b: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         J = T.match_buffer(j, (m,), "int64")
#         B = T.match_buffer(b, (m,), "float32")
#         for i in range(m):
#             loaded: T.int64 = J[i]
#             assert 0 <= loaded and loaded < n, "IndexError: index out of bounds: dim 0 of 'A' has n elements"
#             B[i] = A[loaded]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), i: R.Tensor(("m",), dtype="int64")) -> R.Tensor(("m",), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         gv: R.Tensor((m,), dtype="float32") = R.call_tir(cls.gather, (x, i), out_sinfo=R.Tensor((m,), dtype="float32"))
#         return gv
