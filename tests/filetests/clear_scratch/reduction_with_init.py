# The init of a reduction writes each element before it is read, also if the reduction has no iteration.
# test opt --passes=ClearScratch

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def total(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n,), "float32")
        with T.block("root"):
            C = T.alloc_buffer((n,), "float32")
            for i, k in T.grid(n, m):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[vi] = T.float32(0)
                    C[vi] = C[vi] + A[vi, vk]
            for i in range(n):
                with T.block("copy"):
                    vi = T.axis.spatial(n, i)
                    B[vi] = C[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def total(a: T.handle, b: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n, m), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         with T.block("root"):
#             C = T.alloc_buffer((n,), "float32")
#             for i, k in T.grid(n, m):
#                 with T.block("sum"):
#                     vi, vk = T.axis.remap("SR", [i, k])
#                     with T.init():
#                         C[vi] = T.float32(0.0)
#                     C[vi] = C[vi] + A[vi, vk]
#             for i in range(n):
#                 with T.block("copy"):
#                     vi = T.axis.spatial(n, i)
#                     B[vi] = C[vi] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
