# Operators on dims of size 0, and reductions whose initial values are the limits of their types.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def none(x: R.Tensor(("n", 0, 3), "float32"), y: R.Tensor(("n", 1, 3), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.add(x, y)
            b = R.sum(a, axis=[1])
            c = R.permute_dims(a)
            d = R.reshape(a, (0, 3))
            e = R.reshape(d, (3, 0, n))
            g = R.nn.softmax(a, axis=1)
            R.output(b, c, e, g)
        return (b, c, e, g)

    @R.function
    def limits(x: R.Tensor(("n", "m"), "int64"), y: R.Tensor(("n", "m"), "float16")) -> R.Object:
        with R.dataflow():
            a = R.max(x, axis=[1])
            b = R.min(x, axis=[0])
            c = R.max(y, axis=[1])
            d = R.astype(R.greater(x, R.const(-1, "int64")), "uint64")
            e = R.prod(x, axis=[0, 1])
            R.output(a, b, c, d, e)
        return (a, b, c, d, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def none(x: R.Tensor(("n", 0, 3), dtype="float32"), y: R.Tensor(("n", 1, 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 0, 3), dtype="float32") = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((n, 0, 3), dtype="float32"))
#             b: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.sum, (a,), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             c: R.Tensor((3, 0, n), dtype="float32") = R.call_tir(cls.permute_dims, (a,), out_sinfo=R.Tensor((3, 0, n), dtype="float32"))
#             d: R.Tensor((0, 3), dtype="float32") = R.reshape(a, R.shape([0, 3]))
#             e: R.Tensor((3, 0, n), dtype="float32") = R.reshape(d, R.shape([3, 0, n]))
#             g: R.Tensor((n, 0, 3), dtype="float32") = R.call_tir(cls.softmax, (a,), out_sinfo=R.Tensor((n, 0, 3), dtype="float32"))
#             R.output(b, c, e, g)
#         return (b, c, e, g)
#
#     @R.function
#     def limits(x: R.Tensor(("n", "m"), dtype="int64"), y: R.Tensor(("n", "m"), dtype="float16")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="int64") = R.call_tir(cls.max, (x,), out_sinfo=R.Tensor((n,), dtype="int64"))
#             b: R.Tensor((m,), dtype="int64") = R.call_tir(cls.min, (x,), out_sinfo=R.Tensor((m,), dtype="int64"))
#             c: R.Tensor((n,), dtype="float16") = R.call_tir(cls.max1, (y,), out_sinfo=R.Tensor((n,), dtype="float16"))
#             lv: R.Tensor((n, m), dtype="bool") = R.call_tir(cls.greater, (x,), out_sinfo=R.Tensor((n, m), dtype="bool"))
#             d: R.Tensor((n, m), dtype="uint64") = R.call_tir(cls.astype, (lv,), out_sinfo=R.Tensor((n, m), dtype="uint64"))
#             e: R.Tensor((), dtype="int64") = R.call_tir(cls.prod, (x,), out_sinfo=R.Tensor((), dtype="int64"))
#             R.output(a, b, c, d, e)
#         return (a, b, c, d, e)
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 0, 3), "float32")
#         B = T.match_buffer(var_B, (n, 1, 3), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 0, 3), "float32")
#         pass
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 0, 3), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n, 3), "float32")
#         for chunk in T.parallel((n + 8191) // 8192):
#             first: T.int64 = chunk * 8192
#             for row in range(T.min(8192, n - first)):
#                 v_ax0: T.int64 = first + row
#                 for strip in range(3):
#                     acc = T.alloc_buffer((1,), "float32", scope="local")
#                     acc[0] = T.float32(0.0)
#                     T_sum[v_ax0 * 3 + strip] = acc[0]
#
#     @T.prim_func(private=True)
#     def permute_dims(var_A: T.handle, var_T_transpose: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 0, 3), "float32")
#         T_transpose = T.match_buffer(var_T_transpose, (3, 0, n), "float32")
#         rows: T.int64 = T.max(8192 // T.max(n * 2, 1), 1)
#         for chunk in T.parallel((rows - 1) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, 0 - first)):
#                 for strip in range(n // 16):
#                     T_transpose[T.Ramp(strip * 16, 1, 16)] = T.Broadcast(A[0], 16)
#                 for strip in range(n // 4 % 4):
#                     T_transpose[T.Ramp(n // 16 * 16 + strip * 4, 1, 4)] = T.Broadcast(A[0], 4)
#                 for tail in range(n % 4):
#                     T_transpose[n // 4 * 4 + tail] = A[0]
#
#     @T.prim_func(private=True)
#     def softmax(var_A: T.handle, var_T_softmax_norm: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 0, 3), "float32")
#         T_softmax_norm = T.match_buffer(var_T_softmax_norm, (n, 0, 3), "float32")
#         for chunk in T.parallel((n + 8191) // 8192):
#             first: T.int64 = chunk * 8192
#             T_softmax_maxelem_row = T.alloc_buffer((3,), "float32")
#             T_softmax_exp_row = T.alloc_buffer((0, 3), "float32")
#             T_softmax_expsum_row = T.alloc_buffer((3,), "float32")
#             for row in range(T.min(8192, n - first)):
#                 v_ax0: T.int64 = first + row
#                 for strip in range(3):
#                     acc = T.alloc_buffer((1,), "float32", scope="local")
#                     acc[0] = T.float32("-inf")
#                     T_softmax_maxelem_row[strip] = acc[0]
#                 for strip in range(3):
#                     acc = T.alloc_buffer((1,), "float32", scope="local")
#                     acc[0] = T.float32(0.0)
#                     T_softmax_expsum_row[strip] = acc[0]
#
#     @T.prim_func(private=True)
#     def max(var_A: T.handle, var_T_max: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "int64")
#         T_max = T.match_buffer(var_T_max, (n,), "int64")
#         rows: T.int64 = T.max(8192 // T.max(m * 3, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 acc = T.alloc_buffer((8,), "int64", scope="local")
#                 acc[T.Ramp(0, 1, 8)] = T.Broadcast(-9223372036854775808, 8)
#                 for strip in range(m // 8):
#                     acc[T.Ramp(0, 1, 8)] = T.max(acc[T.Ramp(0, 1, 8)], A[T.Ramp(v_ax0 * m + strip * 8, 1, 8)])
#                 acc1 = T.alloc_buffer((1,), "int64", scope="local")
#                 acc1[0] = T.max(-9223372036854775808, T.vector_max("int64", acc[T.Ramp(0, 1, 8)]))
#                 for tail in range(m % 8):
#                     acc1[0] = T.max(acc1[0], A[v_ax0 * m + (m // 8 * 8 + tail)])
#                 T_max[v_ax0] = acc1[0]
#
#     @T.prim_func(private=True)
#     def min(var_A: T.handle, var_T_min: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "int64")
#         T_min = T.match_buffer(var_T_min, (m,), "int64")
#         if 524288 <= m * n and m < 1024:
#             piece_rows: T.int64 = T.max(131072 // T.max(m, 1), 1)
#             partial = T.alloc_buffer(((n + (piece_rows - 1)) // piece_rows, m), "int64")
#             for chunk in T.parallel((n + (piece_rows - 1)) // piece_rows):
#                 for row in range(T.min(1, (n + (piece_rows - 1)) // piece_rows - chunk)):
#                     piece: T.int64 = chunk + row
#                     for strip in range(m // 8):
#                         acc = T.alloc_buffer((8,), "int64", scope="local")
#                         acc[T.Ramp(0, 1, 8)] = T.Broadcast(9223372036854775807, 8)
#                         for within in range(T.min(piece_rows, n - piece * piece_rows)):
#                             acc[T.Ramp(0, 1, 8)] = T.min(acc[T.Ramp(0, 1, 8)], A[T.Ramp((piece * piece_rows + within) * m + strip * 8, 1, 8)])
#                         partial[T.Ramp(piece * m + strip * 8, 1, 8)] = acc[T.Ramp(0, 1, 8)]
#                     for strip in range(m % 8 // 4):
#                         acc = T.alloc_buffer((4,), "int64", scope="local")
#                         acc[T.Ramp(0, 1, 4)] = T.Broadcast(9223372036854775807, 4)
#                         for within in range(T.min(piece_rows, n - piece * piece_rows)):
#                             acc[T.Ramp(0, 1, 4)] = T.min(acc[T.Ramp(0, 1, 4)], A[T.Ramp((piece * piece_rows + within) * m + (m // 8 * 8 + strip * 4), 1, 4)])
#                         partial[T.Ramp(piece * m + (m // 8 * 8 + strip * 4), 1, 4)] = acc[T.Ramp(0, 1, 4)]
#                     for strip in range(m % 4):
#                         acc = T.alloc_buffer((1,), "int64", scope="local")
#                         acc[0] = 9223372036854775807
#                         for within in range(T.min(piece_rows, n - piece * piece_rows)):
#                             acc[0] = T.min(acc[0], A[(piece * piece_rows + within) * m + (m // 4 * 4 + strip)])
#                         partial[piece * m + (m // 4 * 4 + strip)] = acc[0]
#             for strip in range(m // 8):
#                 acc = T.alloc_buffer((8,), "int64", scope="local")
#                 acc[T.Ramp(0, 1, 8)] = T.Broadcast(9223372036854775807, 8)
#                 for piece in range((n + (piece_rows - 1)) // piece_rows):
#                     acc[T.Ramp(0, 1, 8)] = T.min(acc[T.Ramp(0, 1, 8)], partial[T.Ramp(piece * m + strip * 8, 1, 8)])
#                 T_min[T.Ramp(strip * 8, 1, 8)] = acc[T.Ramp(0, 1, 8)]
#             for strip in range(m % 8 // 4):
#                 acc = T.alloc_buffer((4,), "int64", scope="local")
#                 acc[T.Ramp(0, 1, 4)] = T.Broadcast(9223372036854775807, 4)
#                 for piece in range((n + (piece_rows - 1)) // piece_rows):
#                     acc[T.Ramp(0, 1, 4)] = T.min(acc[T.Ramp(0, 1, 4)], partial[T.Ramp(piece * m + (m // 8 * 8 + strip * 4), 1, 4)])
#                 T_min[T.Ramp(m // 8 * 8 + strip * 4, 1, 4)] = acc[T.Ramp(0, 1, 4)]
#             for strip in range(m % 4):
#                 acc = T.alloc_buffer((1,), "int64", scope="local")
#                 acc[0] = 9223372036854775807
#                 for piece in range((n + (piece_rows - 1)) // piece_rows):
#                     acc[0] = T.min(acc[0], partial[piece * m + (m // 4 * 4 + strip)])
#                 T_min[m // 4 * 4 + strip] = acc[0]
#         else:
#             rows: T.int64 = T.max(8192 // T.max(n * 144, 1), 1)
#             for chunk in T.parallel(((m + 7) // 8 + (rows - 1)) // rows):
#                 first: T.int64 = chunk * rows
#                 for row in range(T.min(rows, (m + 7) // 8 - first)):
#                     strip: T.int64 = first + row
#                     if strip * 8 + 8 <= m:
#                         acc = T.alloc_buffer((8,), "int64", scope="local")
#                         acc[T.Ramp(0, 1, 8)] = T.Broadcast(9223372036854775807, 8)
#                         for v_k0 in range(n):
#                             acc[T.Ramp(0, 1, 8)] = T.min(acc[T.Ramp(0, 1, 8)], A[T.Ramp(v_k0 * m + strip * 8, 1, 8)])
#                         T_min[T.Ramp(strip * 8, 1, 8)] = acc[T.Ramp(0, 1, 8)]
#                     else:
#                         for strip1 in range(m // 8 - strip):
#                             acc = T.alloc_buffer((8,), "int64", scope="local")
#                             acc[T.Ramp(0, 1, 8)] = T.Broadcast(9223372036854775807, 8)
#                             for v_k0 in range(n):
#                                 acc[T.Ramp(0, 1, 8)] = T.min(acc[T.Ramp(0, 1, 8)], A[T.Ramp(v_k0 * m + (strip * 8 + strip1 * 8), 1, 8)])
#                             T_min[T.Ramp(strip * 8 + strip1 * 8, 1, 8)] = acc[T.Ramp(0, 1, 8)]
#                         for strip1 in range(m % 8 // 4):
#                             acc = T.alloc_buffer((4,), "int64", scope="local")
#                             acc[T.Ramp(0, 1, 4)] = T.Broadcast(9223372036854775807, 4)
#                             for v_k0 in range(n):
#                                 acc[T.Ramp(0, 1, 4)] = T.min(acc[T.Ramp(0, 1, 4)], A[T.Ramp(v_k0 * m + (m // 8 * 8 + strip1 * 4), 1, 4)])
#                             T_min[T.Ramp(m // 8 * 8 + strip1 * 4, 1, 4)] = acc[T.Ramp(0, 1, 4)]
#                         for strip1 in range(m % 4):
#                             acc = T.alloc_buffer((1,), "int64", scope="local")
#                             acc[0] = 9223372036854775807
#                             for v_k0 in range(n):
#                                 acc[0] = T.min(acc[0], A[v_k0 * m + (m // 4 * 4 + strip1)])
#                             T_min[m // 4 * 4 + strip1] = acc[0]
#
#     @T.prim_func(private=True)
#     def max1(var_A: T.handle, var_T_max: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float16")
#         T_max = T.match_buffer(var_T_max, (n,), "float16")
#         rows: T.int64 = T.max(8192 // T.max(m * 3, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 acc = T.alloc_buffer((16,), "float16", scope="local")
#                 acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float16("-inf"), 16)
#                 for strip in range(m // 16):
#                     acc[T.Ramp(0, 1, 16)] = T.max(acc[T.Ramp(0, 1, 16)], A[T.Ramp(v_ax0 * m + strip * 16, 1, 16)])
#                 acc1 = T.alloc_buffer((1,), "float16", scope="local")
#                 acc1[0] = T.max(T.float16("-inf"), T.vector_max("float16", acc[T.Ramp(0, 1, 16)]))
#                 for tail in range(m % 16):
#                     acc1[0] = T.max(acc1[0], A[v_ax0 * m + (m // 16 * 16 + tail)])
#                 T_max[v_ax0] = acc1[0]
#
#     @T.prim_func(private=True)
#     def greater(var_A: T.handle, var_T_greater: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "int64")
#         T_greater = T.match_buffer(var_T_greater, (n, m), "bool")
#         for chunk in T.parallel((n * m + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n * m - first) // 8):
#                 T_greater[T.Ramp(first + strip * 8, 1, 8)] = A[T.Ramp(first + strip * 8, 1, 8)] > T.Broadcast(-1, 8)
#             for strip in range(T.min(2688, n * m - first) % 8 // 4):
#                 T_greater[T.Ramp(first + (T.min(2688, n * m - first) // 8 * 8 + strip * 4), 1, 4)] = A[T.Ramp(first + (T.min(2688, n * m - first) // 8 * 8 + strip * 4), 1, 4)] > T.Broadcast(-1, 4)
#             for tail in range(T.min(2688, n * m - first) % 8 % 4):
#                 T_greater[first + (T.min(2688, n * m - first) // 8 * 8 + T.min(2688, n * m - first) % 8 // 4 * 4 + tail)] = A[first + (T.min(2688, n * m - first) // 8 * 8 + T.min(2688, n * m - first) % 8 // 4 * 4 + tail)] > -1
#
#     @T.prim_func(private=True)
#     def astype(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "bool")
#         compute = T.match_buffer(var_compute, (n, m), "uint64")
#         for chunk in T.parallel((n * m + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for strip in range(T.min(2688, n * m - first) // 8):
#                 compute[T.Ramp(first + strip * 8, 1, 8)] = T.Cast("uint64x8", A[T.Ramp(first + strip * 8, 1, 8)])
#             for strip in range(T.min(2688, n * m - first) % 8 // 4):
#                 compute[T.Ramp(first + (T.min(2688, n * m - first) // 8 * 8 + strip * 4), 1, 4)] = T.Cast("uint64x4", A[T.Ramp(first + (T.min(2688, n * m - first) // 8 * 8 + strip * 4), 1, 4)])
#             for tail in range(T.min(2688, n * m - first) % 8 % 4):
#                 compute[first + (T.min(2688, n * m - first) // 8 * 8 + T.min(2688, n * m - first) % 8 // 4 * 4 + tail)] = T.Cast("uint64", A[first + (T.min(2688, n * m - first) // 8 * 8 + T.min(2688, n * m - first) % 8 // 4 * 4 + tail)])
#
#     @T.prim_func(private=True)
#     def prod(var_A: T.handle, T_prod: T.Buffer((), "int64")):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "int64")
#         if 524288 <= n * m:
#             partial = T.alloc_buffer(((n * m + (131072 - 1)) // 131072,), "int64")
#             for chunk in T.parallel((n * m + 131071) // 131072):
#                 for row in range(T.min(1, (n * m + 131071) // 131072 - chunk)):
#                     piece: T.int64 = chunk + row
#                     acc = T.alloc_buffer((8,), "int64", scope="local")
#                     acc[T.Ramp(0, 1, 8)] = T.Broadcast(1, 8)
#                     for strip in range(T.min(131072, n * m - piece * 131072) // 8):
#                         acc[T.Ramp(0, 1, 8)] = acc[T.Ramp(0, 1, 8)] * A[T.Ramp(piece * 131072 + strip * 8, 1, 8)]
#                     acc1 = T.alloc_buffer((1,), "int64", scope="local")
#                     acc1[0] = acc[0] * acc[4] * (acc[2] * acc[6]) * (acc[1] * acc[5] * (acc[3] * acc[7]))
#                     for tail in range(T.min(131072, n * m - piece * 131072) - T.min(131072, n * m - piece * 131072) // 8 * 8):
#                         acc1[0] = acc1[0] * A[piece * 131072 + (T.min(131072, n * m - piece * 131072) // 8 * 8 + tail)]
#                     partial[piece] = acc1[0]
#             acc = T.alloc_buffer((8,), "int64", scope="local")
#             acc[T.Ramp(0, 1, 8)] = T.Broadcast(1, 8)
#             for strip in range((n * m + 131071) // 131072 // 8):
#                 acc[T.Ramp(0, 1, 8)] = acc[T.Ramp(0, 1, 8)] * partial[T.Ramp(strip * 8, 1, 8)]
#             acc1 = T.alloc_buffer((1,), "int64", scope="local")
#             acc1[0] = acc[0] * acc[4] * (acc[2] * acc[6]) * (acc[1] * acc[5] * (acc[3] * acc[7]))
#             for tail in range((n * m + 131071) // 131072 - (n * m + 131071) // 131072 // 8 * 8):
#                 acc1[0] = acc1[0] * partial[(n * m + 131071) // 131072 // 8 * 8 + tail]
#             T_prod[0] = acc1[0]
#         else:
#             acc = T.alloc_buffer((8,), "int64", scope="local")
#             acc[T.Ramp(0, 1, 8)] = T.Broadcast(1, 8)
#             for strip in range(n * m // 8):
#                 acc[T.Ramp(0, 1, 8)] = acc[T.Ramp(0, 1, 8)] * A[T.Ramp(strip * 8, 1, 8)]
#             acc1 = T.alloc_buffer((1,), "int64", scope="local")
#             acc1[0] = acc[0] * acc[4] * (acc[2] * acc[6]) * (acc[1] * acc[5] * (acc[3] * acc[7]))
#             for tail in range(n * m - n * m // 8 * 8):
#                 acc1[0] = acc1[0] * A[n * m // 8 * 8 + tail]
#             T_prod[0] = acc1[0]
