# Vector functions in a vectorized axis are called on tiles; a single function reads and writes the buffers directly.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,InlineInjective,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.tanh(x)
            b = R.multiply(R.sigmoid(R.add(y, y)), y)
            c = R.astype(R.cos(x), "float16")
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.tanh, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.fused_add_sigmoid_multiply, (y,), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             c: R.Tensor((n,), dtype="float16") = R.call_tir(cls.fused_cos_astype, (x,), out_sinfo=R.Tensor((n,), dtype="float16"))
#             R.output(a, b, c)
#         return (a, b, c)
#
#     @T.prim_func(private=True)
#     def tanh(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 0})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 1023) // 1024):
#             first: T.int64 = chunk * 1024
#             for tile in range((T.min(1024, n - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_tanh_f32", T.address_of(compute[first + tile * 512]), T.address_of(A[first + tile * 512]), T.min(512, T.min(1024, n - first) - tile * 512)))
#
#     @T.prim_func(private=True)
#     def fused_add_sigmoid_multiply(var_y: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         y = T.match_buffer(var_y, (n, 4), "float32")
#         b = T.match_buffer(var_b, (n, 4), "float32")
#         for chunk in T.parallel((n * 4 + 767) // 768):
#             first: T.int64 = chunk * 768
#             tile = T.alloc_buffer((512,), "float32", scope="local")
#             for tile1 in range((T.min(768, n * 4 - first) + 511) // 512):
#                 for strip in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16):
#                     for lane in T.vectorized(16):
#                         tile[0 + strip * 16 + lane] = y[(first + (tile1 * 512 + (0 + strip * 16 + lane))) // 4, (first + (tile1 * 512 + (0 + strip * 16 + lane))) % 4] + y[(first + (tile1 * 512 + (0 + strip * 16 + lane))) // 4, (first + (tile1 * 512 + (0 + strip * 16 + lane))) % 4]
#                 for strip in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4):
#                     for lane in T.vectorized(4):
#                         tile[0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane] = y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) % 4] + y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) % 4]
#                 for tail in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 % 4 // 1):
#                     tile[0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1] = y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) % 4] + y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) % 4]
#                 T.evaluate(T.call_extern("int64", "pliant_vec_sigmoid_f32", T.address_of(tile[0]), T.address_of(tile[0]), T.min(512, T.min(768, n * 4 - first) - tile1 * 512)))
#                 for strip in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16):
#                     for lane in T.vectorized(16):
#                         b[(first + (tile1 * 512 + (0 + strip * 16 + lane))) // 4, (first + (tile1 * 512 + (0 + strip * 16 + lane))) % 4] = tile[0 + strip * 16 + lane] * y[(first + (tile1 * 512 + (0 + strip * 16 + lane))) // 4, (first + (tile1 * 512 + (0 + strip * 16 + lane))) % 4]
#                 for strip in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4):
#                     for lane in T.vectorized(4):
#                         b[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) % 4] = tile[0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane] * y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + strip * 4 + lane))) % 4]
#                 for tail in range(T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 % 4 // 1):
#                     b[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) % 4] = tile[0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1] * y[(first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) // 4, (first + (tile1 * 512 + (0 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) // 16 * 16 + T.min(512, T.min(768, n * 4 - first) - tile1 * 512) % 16 // 4 * 4 + tail * 1))) % 4]
#
#     @T.prim_func(private=True)
#     def fused_cos_astype(var_x: T.handle, var_c: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n,), "float32")
#         c = T.match_buffer(var_c, (n,), "float16")
#         for chunk in T.parallel((n + 895) // 896):
#             first: T.int64 = chunk * 896
#             tile = T.alloc_buffer((512,), "float32", scope="local")
#             for tile1 in range((T.min(896, n - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_cos_f32", T.address_of(tile[0]), T.address_of(x[first + tile1 * 512]), T.min(512, T.min(896, n - first) - tile1 * 512)))
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f32_to_f16", T.address_of(c[first + tile1 * 512]), T.address_of(tile[0]), T.min(512, T.min(896, n - first) - tile1 * 512)))
