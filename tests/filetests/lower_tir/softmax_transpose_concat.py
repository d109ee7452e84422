# A softmax, a transpose and a concatenation, lowered to vectorized loops.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), i: R.Tensor(("k",), "int64")) -> R.Object:
        with R.dataflow():
            y = R.nn.softmax(x, axis=-1)
            z = R.permute_dims(y, axes=[1, 0])
            g = R.concat((z, z), axis=0)
            R.output(g)
        return g

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), i: R.Tensor(("k",), dtype="int64")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         k = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.softmax, (x,), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             z: R.Tensor((m, n), dtype="float32") = R.call_tir(cls.permute_dims, (y,), out_sinfo=R.Tensor((m, n), dtype="float32"))
#             g: R.Tensor((m * 2, n), dtype="float32") = R.call_tir(cls.concat, (z, z), out_sinfo=R.Tensor((m * 2, n), dtype="float32"))
#             R.output(g)
#         return g
#
#     @T.prim_func(private=True)
#     def softmax(var_A: T.handle, var_T_softmax_norm: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_softmax_norm = T.match_buffer(var_T_softmax_norm, (n, m), "float32")
#         rows: T.int64 = T.max(8192 // T.max(m * 21, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             T_softmax_exp_row = T.alloc_buffer((m,), "float32")
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 T_softmax_expsum_row = T.alloc_buffer((1,), "float32", scope="local")
#                 T_softmax_maxelem_row = T.alloc_buffer((1,), "float32", scope="local")
#                 if m < 16:
#                     acc = T.alloc_buffer((16,), "float32", scope="local")
#                     acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float32("-inf"), 16)
#                     for strip in range(m // 16):
#                         acc[T.Ramp(0, 1, 16)] = T.max(acc[T.Ramp(0, 1, 16)], A[T.Ramp(v_ax0 * m + strip * 16, 1, 16)])
#                     acc1 = T.alloc_buffer((1,), "float32", scope="local")
#                     acc1[0] = T.max(T.float32("-inf"), T.vector_max("float32", acc[T.Ramp(0, 1, 16)]))
#                     for tail in range(m % 16):
#                         acc1[0] = T.max(acc1[0], A[v_ax0 * m + (m // 16 * 16 + tail)])
#                     T_softmax_maxelem_row[0] = acc1[0]
#                 else:
#                     tile = T.alloc_buffer((1,), "float32", scope="local")
#                     tile[0] = T.float32("-inf")
#                     T.evaluate(T.call_extern("int64", "pliant_vec_accumulate_maximum_f32", T.address_of(tile[0]), T.address_of(A[v_ax0 * m]), m))
#                     T_softmax_maxelem_row[0] = tile[0]
#                 with T.decl_buffer((512,), "float32", scope="local") as tile:
#                     for tile1 in range((m + 511) // 512):
#                         for strip in range(T.min(512, m - tile1 * 512) // 16):
#                             tile[T.Ramp(strip * 16, 1, 16)] = A[T.Ramp(v_ax0 * m + (tile1 * 512 + strip * 16), 1, 16)] - T.Broadcast(T_softmax_maxelem_row[0], 16)
#                         for strip in range(T.min(512, m - tile1 * 512) // 4 % 4):
#                             tile[T.Ramp(T.min(512, m - tile1 * 512) // 16 * 16 + strip * 4, 1, 4)] = A[T.Ramp(v_ax0 * m + (tile1 * 512 + (T.min(512, m - tile1 * 512) // 16 * 16 + strip * 4)), 1, 4)] - T.Broadcast(T_softmax_maxelem_row[0], 4)
#                         for tail in range(T.min(512, m - tile1 * 512) % 4):
#                             tile[T.min(512, m - tile1 * 512) // 4 * 4 + tail] = A[v_ax0 * m + (tile1 * 512 + (T.min(512, m - tile1 * 512) // 4 * 4 + tail))] - T_softmax_maxelem_row[0]
#                         T.evaluate(T.call_extern("int64", "pliant_vec_exp_f32", T.address_of(T_softmax_exp_row[tile1 * 512]), T.address_of(tile[0]), T.min(512, m - tile1 * 512)))
#                 with T.decl_buffer((16,), "float32", scope="local") as acc:
#                     acc1 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc1[0] = T.float64(-0.0)
#                     for part in range((m + 1008) // 1024):
#                         acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float32(-0.0), 16)
#                         for strip in range(T.min(64, m // 16 - part * 64)):
#                             acc[T.Ramp(0, 1, 16)] = acc[T.Ramp(0, 1, 16)] + T_softmax_exp_row[T.Ramp((part * 64 + strip) * 16, 1, 16)]
#                         acc1[0] = acc1[0] + T.Cast("float64", T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]))
#                     acc2 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc2[0] = T.Cast("float64", T.float32(0.0)) + acc1[0]
#                     for tail in range(m % 16):
#                         acc2[0] = acc2[0] + T.Cast("float64", T_softmax_exp_row[m // 16 * 16 + tail])
#                     T_softmax_expsum_row[0] = T.Cast("float32", acc2[0])
#                 for strip in range(m // 16):
#                     T_softmax_norm[T.Ramp(v_ax0 * m + strip * 16, 1, 16)] = T_softmax_exp_row[T.Ramp(strip * 16, 1, 16)] / T.Broadcast(T_softmax_expsum_row[0], 16)
#                 for strip in range(m // 4 % 4):
#                     T_softmax_norm[T.Ramp(v_ax0 * m + (m // 16 * 16 + strip * 4), 1, 4)] = T_softmax_exp_row[T.Ramp(m // 16 * 16 + strip * 4, 1, 4)] / T.Broadcast(T_softmax_expsum_row[0], 4)
#                 for tail in range(m % 4):
#                     T_softmax_norm[v_ax0 * m + (m // 4 * 4 + tail)] = T_softmax_exp_row[m // 4 * 4 + tail] / T_softmax_expsum_row[0]
#
#     @T.prim_func(private=True)
#     def permute_dims(var_A: T.handle, var_T_transpose: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         T_transpose = T.match_buffer(var_T_transpose, (m, n), "float32")
#         rows: T.int64 = T.max(8192 // T.max(n * 32, 1), 1)
#         for chunk in T.parallel(((m + 15) // 16 + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, (m + 15) // 16 - first)):
#                 block: T.int64 = first + row
#                 tile = T.alloc_buffer((1024,), "float32", scope="local")
#                 for part in range((n + 63) // 64):
#                     for strip, point in T.grid(T.min(64, n - part * 64) // 16, T.min(16, m - block * 16)):
#                         tile[T.Ramp(point * 64 + strip * 16, 1, 16)] = A[T.Ramp((part * 64 + strip * 16) * m + (block * 16 + point), m, 16)]
#                     for strip, point in T.grid(T.min(64, n - part * 64) // 4 % 4, T.min(16, m - block * 16)):
#                         tile[T.Ramp(point * 64 + (T.min(64, n - part * 64) // 16 * 16 + strip * 4), 1, 4)] = A[T.Ramp((part * 64 + (T.min(64, n - part * 64) // 16 * 16 + strip * 4)) * m + (block * 16 + point), m, 4)]
#                     for tail, point in T.grid(T.min(64, n - part * 64) % 4, T.min(16, m - block * 16)):
#                         tile[point * 64 + (T.min(64, n - part * 64) // 4 * 4 + tail)] = A[(part * 64 + (T.min(64, n - part * 64) // 4 * 4 + tail)) * m + (block * 16 + point)]
#                     for point in range(T.min(16, m - block * 16)):
#                         for strip in range(T.min(64, n - part * 64) // 16):
#                             T_transpose[T.Ramp((block * 16 + point) * n + (part * 64 + strip * 16), 1, 16)] = tile[T.Ramp(point * 64 + strip * 16, 1, 16)]
#                         for strip in range(T.min(64, n - part * 64) // 4 % 4):
#                             T_transpose[T.Ramp((block * 16 + point) * n + (part * 64 + (T.min(64, n - part * 64) // 16 * 16 + strip * 4)), 1, 4)] = tile[T.Ramp(point * 64 + (T.min(64, n - part * 64) // 16 * 16 + strip * 4), 1, 4)]
#                         for tail in range(T.min(64, n - part * 64) % 4):
#                             T_transpose[(block * 16 + point) * n + (part * 64 + (T.min(64, n - part * 64) // 4 * 4 + tail))] = tile[point * 64 + (T.min(64, n - part * 64) // 4 * 4 + tail)]
#
#     @T.prim_func(private=True)
#     def concat(var_A: T.handle, var_B: T.handle, var_T_concat: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         m = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (m, n), "float32")
#         B = T.match_buffer(var_B, (m, n), "float32")
#         T_concat = T.match_buffer(var_T_concat, (m * 2, n), "float32")
#         rows: T.int64 = T.max(8192 // T.max(n * 4, 1), 1)
#         for chunk in T.parallel((m * 2 + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, m * 2 - first)):
#                 v_ax0: T.int64 = first + row
#                 for strip in range(n // 16):
#                     T_concat[T.Ramp(v_ax0 * n + strip * 16, 1, 16)] = T.if_then_else(v_ax0 < m, A[T.Ramp(v_ax0 * n + strip * 16, 1, 16)], B[T.Ramp((v_ax0 - m) * n + strip * 16, 1, 16)])
#                 for strip in range(n // 4 % 4):
#                     T_concat[T.Ramp(v_ax0 * n + (n // 16 * 16 + strip * 4), 1, 4)] = T.if_then_else(v_ax0 < m, A[T.Ramp(v_ax0 * n + (n // 16 * 16 + strip * 4), 1, 4)], B[T.Ramp((v_ax0 - m) * n + (n // 16 * 16 + strip * 4), 1, 4)])
#                 for tail in range(n % 4):
#                     T_concat[v_ax0 * n + (n // 4 * 4 + tail)] = T.if_then_else(v_ax0 < m, A[v_ax0 * n + (n // 4 * 4 + tail)], B[(v_ax0 - m) * n + (n // 4 * 4 + tail)])
