# A reshape between two functions that cannot be fused stays a view.
# test opt --passes=LegalizeOps,LowerUnitDimReshapes,AnnotateTIROpPattern,FuseOps,FuseTIR,RewriteDataflowReshape,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, "n", 8), "float32")) -> R.Object:
        with R.dataflow():
            a = R.sort(x, axis=2)
            b = R.squeeze(a, axis=0)
            c = R.cumsum(b, axis=1)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((1, "n", 8), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((1, n, 8), dtype="float32") = R.call_tir(cls.sort, (x,), out_sinfo=R.Tensor((1, n, 8), dtype="float32"))
#             b: R.Tensor((n, 8), dtype="float32") = R.reshape(a, R.shape([n, 8]))
#             c: R.Tensor((n, 8), dtype="float32") = R.call_tir(cls.cumsum, (b,), out_sinfo=R.Tensor((n, 8), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def sort(var_A: T.handle, var_sort: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 8})
#         n = T.int64()
#         A = T.match_buffer(var_A, (1, n, 8), "float32")
#         sort = T.match_buffer(var_sort, (1, n, 8), "float32")
#         with T.block("sort"):
#             T.evaluate(T.call_kernel("sort", x=T.view(A, [n, 8], strides=[8, 1]), values=T.view(sort, [n, 8], strides=[8, 1])))
#
#     @T.prim_func(private=True)
#     def cumsum(var_A: T.handle, var_cumsum: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 8})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 8), "float32")
#         cumsum = T.match_buffer(var_cumsum, (n, 8), "float32")
#         with T.block("cumsum"):
#             for chunk in T.parallel((n + 255) // 256):
#                 first: T.int64 = chunk * 256
#                 for row in range(T.min(256, n - first)):
#                     at: T.int64 = first + row
#                     assert 0 <= at and at < n, "ShapeError: a row lies outside of its tensor"
#                     total = T.alloc_buffer((1,), "float32", scope="local")
#                     total[0] = T.float32(0.0)
#                     for k in range(8):
#                         next: T.float32 = total[0] + A[at, k]
#                         cumsum[at, k] = next
#                         total[0] = next
