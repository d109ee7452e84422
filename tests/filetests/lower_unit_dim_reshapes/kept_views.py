# Reshapes that are not fused stay views: between kernels, as an output of the block, and of dims that are not 1.
# test opt --passes=LegalizeOps,LowerUnitDimReshapes,AnnotateTIROpPattern,FuseOps,FuseTIR,RewriteDataflowReshape,EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def between_kernels(x: R.Tensor((1, "n", 8), "float32")) -> R.Object:
        with R.dataflow():
            a = R.sort(x, axis=2)
            b = R.squeeze(a, axis=0)
            c = R.cumsum(b, axis=1)
            R.output(c)
        return c

    @R.function
    def output(x: R.Tensor((1, "n"), "float32")) -> R.Object:
        with R.dataflow():
            a = R.exp(x)
            b = R.squeeze(a, axis=0)
            R.output(b)
        return b

    @R.function
    def other_dims(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 2, 2), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.reshape(a, R.shape([n, 2, 2]))
            c = R.add(b, y)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def between_kernels(x: R.Tensor((1, "n", 8), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((1, n, 8), dtype="float32") = R.call_tir(cls.sort, (x,), out_sinfo=R.Tensor((1, n, 8), dtype="float32"))
#             b: R.Tensor((n, 8), dtype="float32") = R.reshape(a, R.shape([n, 8]))
#             c: R.Tensor((n, 8), dtype="float32") = R.call_tir(cls.cumsum, (b,), out_sinfo=R.Tensor((n, 8), dtype="float32"))
#             R.output(c)
#         return c
#
#     @R.function
#     def output(x: R.Tensor((1, "n"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((1, n), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((1, n), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.reshape(a, R.shape([n]))
#             R.output(b)
#         return b
#
#     @R.function
#     def other_dims(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 2, 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.exp1, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             b: R.Tensor((n, 2, 2), dtype="float32") = R.reshape(a, R.shape([n, 2, 2]))
#             c: R.Tensor((n, 2, 2), dtype="float32") = R.call_tir(cls.add, (b, y), out_sinfo=R.Tensor((n, 2, 2), dtype="float32"))
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
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (1, n), "float32")
#         compute = T.match_buffer(var_compute, (1, n), "float32")
#         for i0, i1 in T.grid(1, n):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def exp1(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         compute = T.match_buffer(var_compute, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2, 2), "float32")
#         B = T.match_buffer(var_B, (n, 2, 2), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 2, 2), "float32")
#         for ax0, ax1, ax2 in T.grid(n, 2, 2):
#             with T.block("T_add"):
#                 v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                 T.reads(A[v_ax0, v_ax1, v_ax2], B[v_ax0, v_ax1, v_ax2])
#                 T.writes(T_add[v_ax0, v_ax1, v_ax2])
#                 T_add[v_ax0, v_ax1, v_ax2] = A[v_ax0, v_ax1, v_ax2] + B[v_ax0, v_ax1, v_ax2]
