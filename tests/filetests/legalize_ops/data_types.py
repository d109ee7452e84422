# Loop functions of operators on 16-bit floats, 8-bit integers and bools.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        h: R.Tensor(("n",), "float16"),
        b: R.Tensor(("n",), "bfloat16"),
        i: R.Tensor(("n",), "int8"),
        u: R.Tensor(("n",), "uint8"),
        c: R.Tensor(("n",), "bool"),
    ) -> R.Object:
        with R.dataflow():
            x = R.exp(h)
            y = R.multiply(b, b)
            z = R.add(i, i)
            w = R.astype(u, "float32")
            v = R.where(c, R.astype(h, "float32"), w)
            s = R.sum(z)
            R.output(x, y, z, v, s)
        return (x, y, z, v, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(h: R.Tensor(("n",), dtype="float16"), b: R.Tensor(("n",), dtype="bfloat16"), i: R.Tensor(("n",), dtype="int8"), u: R.Tensor(("n",), dtype="uint8"), c: R.Tensor(("n",), dtype="bool")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             x: R.Tensor((n,), dtype="float16") = R.call_tir(cls.exp, (h,), out_sinfo=R.Tensor((n,), dtype="float16"))
#             y: R.Tensor((n,), dtype="bfloat16") = R.call_tir(cls.multiply, (b, b), out_sinfo=R.Tensor((n,), dtype="bfloat16"))
#             z: R.Tensor((n,), dtype="int8") = R.call_tir(cls.add, (i, i), out_sinfo=R.Tensor((n,), dtype="int8"))
#             w: R.Tensor((n,), dtype="float32") = R.call_tir(cls.astype, (u,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             lv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.astype1, (h,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             v: R.Tensor((n,), dtype="float32") = R.call_tir(cls.where, (c, lv, w), out_sinfo=R.Tensor((n,), dtype="float32"))
#             s: R.Tensor((), dtype="int8") = R.call_tir(cls.sum, (z,), out_sinfo=R.Tensor((), dtype="int8"))
#             R.output(x, y, z, v, s)
#         return (x, y, z, v, s)
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float16")
#         compute = T.match_buffer(var_compute, (n,), "float16")
#         for chunk in T.parallel((n + 767) // 768):
#             first: T.int64 = chunk * 768
#             tile = T.alloc_buffer((512,), "float32", scope="local")
#             tile1 = T.alloc_buffer((512,), "float32", scope="local")
#             for tile2 in range((T.min(768, n - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f16_to_f32", T.address_of(tile1[0]), T.address_of(A[first + tile2 * 512]), T.min(512, T.min(768, n - first) - tile2 * 512)))
#                 T.evaluate(T.call_extern("int64", "pliant_vec_exp_f32", T.address_of(tile[0]), T.address_of(tile1[0]), T.min(512, T.min(768, n - first) - tile2 * 512)))
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f32_to_f16", T.address_of(compute[first + tile2 * 512]), T.address_of(tile[0]), T.min(512, T.min(768, n - first) - tile2 * 512)))
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_B: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "bfloat16")
#         B = T.match_buffer(var_B, (n,), "bfloat16")
#         T_multiply = T.match_buffer(var_T_multiply, (n,), "bfloat16")
#         for chunk in T.parallel((n + 1343) // 1344):
#             first: T.int64 = chunk * 1344
#             tile = T.alloc_buffer((512,), "float32", scope="local")
#             for tile1 in range((T.min(1344, n - first) + 511) // 512):
#                 for strip in range(T.min(512, T.min(1344, n - first) - tile1 * 512) // 16):
#                     tile[T.Ramp(strip * 16, 1, 16)] = T.Cast("float32x16", A[T.Ramp(first + (tile1 * 512 + strip * 16), 1, 16)]) * T.Cast("float32x16", B[T.Ramp(first + (tile1 * 512 + strip * 16), 1, 16)])
#                 for strip in range(T.min(512, T.min(n - first, 1344) - tile1 * 512) // 4 % 4):
#                     tile[T.Ramp(T.min(512, T.min(1344, n - first) - tile1 * 512) // 16 * 16 + strip * 4, 1, 4)] = T.Cast("float32x4", A[T.Ramp(first + (tile1 * 512 + (T.min(512, T.min(1344, n - first) - tile1 * 512) // 16 * 16 + strip * 4)), 1, 4)]) * T.Cast("float32x4", B[T.Ramp(first + (tile1 * 512 + (T.min(512, T.min(1344, n - first) - tile1 * 512) // 16 * 16 + strip * 4)), 1, 4)])
#                 for tail in range(T.min(512, T.min(n - first, 1344) - tile1 * 512) % 4):
#                     tile[T.min(512, T.min(n - first, 1344) - tile1 * 512) // 4 * 4 + tail] = T.Cast("float32", A[first + (tile1 * 512 + (T.min(512, T.min(n - first, 1344) - tile1 * 512) // 4 * 4 + tail))]) * T.Cast("float32", B[first + (tile1 * 512 + (T.min(512, T.min(n - first, 1344) - tile1 * 512) // 4 * 4 + tail))])
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f32_to_bf16", T.address_of(T_multiply[first + tile1 * 512]), T.address_of(tile[0]), T.min(512, T.min(1344, n - first) - tile1 * 512)))
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int8")
#         B = T.match_buffer(var_B, (n,), "int8")
#         T_add = T.match_buffer(var_T_add, (n,), "int8")
#         for chunk in T.parallel((n + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n - first) // 64):
#                 T_add[T.Ramp(first + strip * 64, 1, 64)] = A[T.Ramp(first + strip * 64, 1, 64)] + B[T.Ramp(first + strip * 64, 1, 64)]
#             for strip in range(T.min(2688, n - first) % 64 // 16):
#                 T_add[T.Ramp(first + (T.min(2688, n - first) // 64 * 64 + strip * 16), 1, 16)] = A[T.Ramp(first + (T.min(2688, n - first) // 64 * 64 + strip * 16), 1, 16)] + B[T.Ramp(first + (T.min(2688, n - first) // 64 * 64 + strip * 16), 1, 16)]
#             for strip in range(T.min(n - first, 2688) // 4 % 4):
#                 T_add[T.Ramp(first + (T.min(n - first, 2688) // 16 * 16 + strip * 4), 1, 4)] = A[T.Ramp(first + (T.min(n - first, 2688) // 16 * 16 + strip * 4), 1, 4)] + B[T.Ramp(first + (T.min(n - first, 2688) // 16 * 16 + strip * 4), 1, 4)]
#             for tail in range(T.min(n - first, 2688) % 4):
#                 T_add[first + (T.min(n - first, 2688) // 4 * 4 + tail)] = A[first + (T.min(n - first, 2688) // 4 * 4 + tail)] + B[first + (T.min(n - first, 2688) // 4 * 4 + tail)]
#
#     @T.prim_func(private=True)
#     def astype(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "uint8")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n - first) // 16):
#                 compute[T.Ramp(first + strip * 16, 1, 16)] = T.Cast("float32x16", A[T.Ramp(first + strip * 16, 1, 16)])
#             for strip in range(T.min(n - first, 2688) // 4 % 4):
#                 compute[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)] = T.Cast("float32x4", A[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)])
#             for tail in range(T.min(n - first, 2688) % 4):
#                 compute[first + (T.min(n - first, 2688) // 4 * 4 + tail)] = T.Cast("float32", A[first + (T.min(n - first, 2688) // 4 * 4 + tail)])
#
#     @T.prim_func(private=True)
#     def astype1(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float16")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for tile in range((T.min(2688, n - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f16_to_f32", T.address_of(compute[first + tile * 512]), T.address_of(A[first + tile * 512]), T.min(512, T.min(2688, n - first) - tile * 512)))
#
#     @T.prim_func(private=True)
#     def where(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_T_where: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "bool")
#         B = T.match_buffer(var_B, (n,), "float32")
#         C = T.match_buffer(var_C, (n,), "float32")
#         T_where = T.match_buffer(var_T_where, (n,), "float32")
#         for chunk in T.parallel((n + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n - first) // 16):
#                 T_where[T.Ramp(first + strip * 16, 1, 16)] = T.Select(A[T.Ramp(first + strip * 16, 1, 16)], B[T.Ramp(first + strip * 16, 1, 16)], C[T.Ramp(first + strip * 16, 1, 16)])
#             for strip in range(T.min(n - first, 2688) // 4 % 4):
#                 T_where[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)] = T.Select(A[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)], B[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)], C[T.Ramp(first + (T.min(2688, n - first) // 16 * 16 + strip * 4), 1, 4)])
#             for tail in range(T.min(n - first, 2688) % 4):
#                 T_where[first + (T.min(n - first, 2688) // 4 * 4 + tail)] = T.Select(A[first + (T.min(n - first, 2688) // 4 * 4 + tail)], B[first + (T.min(n - first, 2688) // 4 * 4 + tail)], C[first + (T.min(n - first, 2688) // 4 * 4 + tail)])
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, T_sum: T.Buffer((), "int8")):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int8")
#         if 524288 <= n:
#             partial = T.alloc_buffer(((n + (131072 - 1)) // 131072,), "int8")
#             for chunk in T.parallel((n + 131071) // 131072):
#                 for row in range(T.min(1, (n + 131071) // 131072 - chunk)):
#                     piece: T.int64 = chunk + row
#                     acc = T.alloc_buffer((16,), "int8", scope="local")
#                     acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.int8(0), 16)
#                     for strip in range(T.min(131072, n - piece * 131072) // 16):
#                         acc[T.Ramp(0, 1, 16)] = acc[T.Ramp(0, 1, 16)] + A[T.Ramp(piece * 131072 + strip * 16, 1, 16)]
#                     acc1 = T.alloc_buffer((1,), "int8", scope="local")
#                     acc1[0] = T.int8(0) + T.vector_sum("int8", acc[T.Ramp(0, 1, 16)])
#                     for tail in range(T.min(131072, n - 131072 * piece) % 16):
#                         acc1[0] = acc1[0] + A[piece * 131072 + (T.min(131072, n - piece * 131072) // 16 * 16 + tail)]
#                     partial[piece] = acc1[0]
#             acc = T.alloc_buffer((16,), "int8", scope="local")
#             acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.int8(0), 16)
#             for strip in range((n + 131071) // 2097152):
#                 acc[T.Ramp(0, 1, 16)] = acc[T.Ramp(0, 1, 16)] + partial[T.Ramp(strip * 16, 1, 16)]
#             acc1 = T.alloc_buffer((1,), "int8", scope="local")
#             acc1[0] = T.int8(0) + T.vector_sum("int8", acc[T.Ramp(0, 1, 16)])
#             for tail in range((n + 131071) // 131072 % 16):
#                 acc1[0] = acc1[0] + partial[(n + 131071) // 2097152 * 16 + tail]
#             T_sum[0] = acc1[0]
#         else:
#             acc = T.alloc_buffer((16,), "int8", scope="local")
#             acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.int8(0), 16)
#             for strip in range(n // 16):
#                 acc[T.Ramp(0, 1, 16)] = acc[T.Ramp(0, 1, 16)] + A[T.Ramp(strip * 16, 1, 16)]
#             acc1 = T.alloc_buffer((1,), "int8", scope="local")
#             acc1[0] = T.int8(0) + T.vector_sum("int8", acc[T.Ramp(0, 1, 16)])
#             for tail in range(n % 16):
#                 acc1[0] = acc1[0] + A[n // 16 * 16 + tail]
#             T_sum[0] = acc1[0]
