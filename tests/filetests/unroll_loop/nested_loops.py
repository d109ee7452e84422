# Nested unrolled loops become one copy of the body for each pair of indices; the serial loop around them stays.
# test opt --passes=UnrollLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def sum(a: T.handle, B: T.Buffer((4,), "float32")):
        n = T.int64()
        A = T.match_buffer(a, (n, 4), "float32")
        for i in T.unroll(4):
            B[i] = T.float32(0)
        for k in range(n):
            for i in T.unroll(2):
                for j in T.unroll(2):
                    B[i * 2 + j] = B[i * 2 + j] + A[k, i * 2 + j]

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return R.call_tir(cls.sum, (x,), out_sinfo=R.Tensor((4,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def sum(a: T.handle, B: T.Buffer((4,), "float32")):
#         n = T.int64()
#         A = T.match_buffer(a, (n, 4), "float32")
#         B[0 + 0] = T.float32(0.0)
#         B[0 + 1] = T.float32(0.0)
#         B[0 + 2] = T.float32(0.0)
#         B[0 + 3] = T.float32(0.0)
#         for k in range(n):
#             B[(0 + 0) * 2 + (0 + 0)] = B[(0 + 0) * 2 + (0 + 0)] + A[k, (0 + 0) * 2 + (0 + 0)]
#             B[(0 + 0) * 2 + (0 + 1)] = B[(0 + 0) * 2 + (0 + 1)] + A[k, (0 + 0) * 2 + (0 + 1)]
#             B[(0 + 1) * 2 + (0 + 0)] = B[(0 + 1) * 2 + (0 + 0)] + A[k, (0 + 1) * 2 + (0 + 0)]
#             B[(0 + 1) * 2 + (0 + 1)] = B[(0 + 1) * 2 + (0 + 1)] + A[k, (0 + 1) * 2 + (0 + 1)]
#
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = R.call_tir(cls.sum, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return gv
