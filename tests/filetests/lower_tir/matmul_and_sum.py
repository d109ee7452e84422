# A matmul, an elementwise operator and a sum, lowered to vectorized loops and kernel calls.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", 6), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.nn.relu(y)
            s = R.sum(R.exp(x), axis=[1])
            R.output(z, s)
        return (z, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", 6), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 6), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((n, 6), dtype="float32"))
#             z: R.Tensor((n, 6), dtype="float32") = R.call_tir(cls.relu, (y,), out_sinfo=R.Tensor((n, 6), dtype="float32"))
#             lv: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             s: R.Tensor((n,), dtype="float32") = R.call_tir(cls.sum, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             R.output(z, s)
#         return (z, s)
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (m, 6), "float32")
#         matmul = T.match_buffer(var_matmul, (n, 6), "float32")
#         T.evaluate(T.call_kernel("matmul", x=T.view(A, [1, n, m], strides=[0, m, 1]), weight=T.view(B, [1, m, 6], strides=[0, 6, 1]), out=T.view(matmul, [1, n, 6], strides=[0, 6, 1])))
#
#     @T.prim_func(private=True)
#     def relu(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 6), "float32")
#         compute = T.match_buffer(var_compute, (n, 6), "float32")
#         for chunk in T.parallel((n + 447) // 448):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n * 6 - first) // 16):
#                 compute[T.Ramp(first + strip * 16, 1, 16)] = T.max(A[T.Ramp(first + strip * 16, 1, 16)], T.Broadcast(T.float32(0.0), 16))
#             for strip in range(T.min(n * 6 - first, 2688) // 4 % 4):
#                 compute[T.Ramp(first + (T.min(2688, n * 6 - first) // 16 * 16 + strip * 4), 1, 4)] = T.max(A[T.Ramp(first + (T.min(2688, n * 6 - first) // 16 * 16 + strip * 4), 1, 4)], T.Broadcast(T.float32(0.0), 4))
#             for tail in range(T.min(n * 6 - first, 2688) % 4):
#                 compute[first + (T.min(n * 6 - first, 2688) // 4 * 4 + tail)] = T.max(A[first + (T.min(n * 6 - first, 2688) // 4 * 4 + tail)], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         compute = T.match_buffer(var_compute, (n, m), "float32")
#         for chunk in T.parallel((n * m + 1023) // 1024):
#             first: T.int64 = chunk * 1024
#             for tile in range((T.min(1024, n * m - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_exp_f32", T.address_of(compute[first + tile * 512]), T.address_of(A[first + tile * 512]), T.min(512, T.min(1024, n * m - first) - tile * 512)))
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n,), "float32")
#         rows: T.int64 = T.max(8192 // T.max(m * 3, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 acc = T.alloc_buffer((16,), "float32", scope="local")
#                 acc1 = T.alloc_buffer((1,), "float64", scope="local")
#                 acc1[0] = T.float64(-0.0)
#                 for part in range((m + 1008) // 1024):
#                     acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float32(-0.0), 16)
#                     for strip in range(T.min(64, m // 16 - part * 64)):
#                         acc[T.Ramp(0, 1, 16)] = acc[T.Ramp(0, 1, 16)] + A[T.Ramp(v_ax0 * m + (part * 64 + strip) * 16, 1, 16)]
#                     acc1[0] = acc1[0] + T.Cast("float64", T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]))
#                 acc2 = T.alloc_buffer((1,), "float64", scope="local")
#                 acc2[0] = T.Cast("float64", T.float32(0.0)) + acc1[0]
#                 for tail in range(m % 16):
#                     acc2[0] = acc2[0] + T.Cast("float64", A[v_ax0 * m + (m // 16 * 16 + tail)])
#                 T_sum[v_ax0] = T.Cast("float32", acc2[0])
