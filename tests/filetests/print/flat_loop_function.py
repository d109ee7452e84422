# Lowered loop functions: flat accesses, vectors, calls of extern functions, and loop annotations.
# test print

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    # Flat accesses, vectors, and the other constructs of lowered code.
    @T.prim_func(private=True)
    def vectors(var_A: T.handle, B: T.Buffer((4, 16), "float32"), s: T.Buffer((), "float32"), k: T.int32):
        T.func_attr({"tir.flat": True, "tir.noalias": True})
        n = T.int64()
        A = T.match_buffer(var_A, (n, 16), "float32")
        acc = T.alloc_buffer((16,), "float32", scope="local")
        acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float32("-inf"), 16)
        for chunk in T.parallel((n + 7) // 8, annotations={"grain": 64, "name": "rows", "fine": True}):
            rows: T.int64 = T.min(8, n - chunk * 8)
            for row in range(rows):
                with T.Assert(0 <= row and row < n, "row is \"out\" of bounds"):
                    x: T.float32x16 = A[T.Ramp((chunk * 8 + row) * 16, 1, 16)]
                    acc[T.Ramp(0, 1, 16)] = T.max(acc[T.Ramp(0, 1, 16)], x * T.Broadcast(T.float32(0.5), 16))
                y: T.float32x16 = T.exp(acc[T.Ramp(0, 1, 16)])
                lanes: T.boolx16 = y < T.Broadcast(T.float32(1.0), 16)
                B[T.Ramp(0, 1, 16)] = T.Select(not lanes, y, T.Broadcast(T.float32(2.0), 16))
                B[T.Ramp(0, 4, 16)] = T.if_then_else(k > T.int32(-3), y, acc[T.Ramp(0, 1, 16)])
        s[0] = T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]) + T.vector_max("float32", acc[T.Ramp(0, 1, 16)])
        s[0] = s[0] + T.vector_min("float32", B[T.Ramp(16, 1, 8)])
        B[5] = T.reinterpret("float32", T.Cast("int32", 7))
        T.evaluate(T.call_extern("int64", "pliant_gemm_f32", 1, n, 16, 16, T.address_of(A[0]), 0, 16, 1, T.address_of(B[0]), 0, 16, 1, T.address_of(B[4 * 3]), 0, 16, 1, 0))
        T.evaluate(T.call_extern("float32", "sinf", B[n % 64]))
        if n // 2 == 4 * 5 or not n > -9223372036854775807:
            B[0] = T.float32("nan")
        else:
            B[0] = T.float32(1.0) / B[T.truncdiv(n, 3)]
        while s[0] < T.float32(0.0):
            s[0] = s[0] + T.float32(1.0)

    # Empty buffers: divisions by a dim of 0.
    @T.prim_func(private=True)
    def empty(A: T.Buffer((4, 0), "float32"), C: T.Buffer((4, 0), "float32")):
        for i in range(4 * 0):
            C[i // T.max(0, 0), i % T.max(0, 0)] = A[i, 0]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def vectors(var_A: T.handle, B: T.Buffer((4, 16), "float32"), s: T.Buffer((), "float32"), k: T.int32):
#         T.func_attr({"tir.flat": True, "tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 16), "float32")
#         acc = T.alloc_buffer((16,), "float32", scope="local")
#         acc[T.Ramp(0, 1, 16)] = T.Broadcast(T.float32("-inf"), 16)
#         for chunk in T.parallel((n + 7) // 8, annotations={"grain": 64, "name": "rows", "fine": True}):
#             rows: T.int64 = T.min(8, n - chunk * 8)
#             for row in range(rows):
#                 with T.Assert(0 <= row and row < n, "row is \"out\" of bounds"):
#                     x: T.float32x16 = A[T.Ramp((chunk * 8 + row) * 16, 1, 16)]
#                     acc[T.Ramp(0, 1, 16)] = T.max(acc[T.Ramp(0, 1, 16)], x * T.Broadcast(T.float32(0.5), 16))
#                 y: T.float32x16 = T.exp(acc[T.Ramp(0, 1, 16)])
#                 lanes: T.boolx16 = y < T.Broadcast(T.float32(1.0), 16)
#                 B[T.Ramp(0, 1, 16)] = T.Select(not lanes, y, T.Broadcast(T.float32(2.0), 16))
#                 B[T.Ramp(0, 4, 16)] = T.if_then_else(k > T.int32(-3), y, acc[T.Ramp(0, 1, 16)])
#         s[0] = T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]) + T.vector_max("float32", acc[T.Ramp(0, 1, 16)])
#         s[0] = s[0] + T.vector_min("float32", B[T.Ramp(16, 1, 8)])
#         B[5] = T.reinterpret("float32", T.Cast("int32", 7))
#         T.evaluate(T.call_extern("int64", "pliant_gemm_f32", 1, n, 16, 16, T.address_of(A[0]), 0, 16, 1, T.address_of(B[0]), 0, 16, 1, T.address_of(B[4 * 3]), 0, 16, 1, 0))
#         T.evaluate(T.call_extern("float32", "sinf", B[n % 64]))
#         if n // 2 == 4 * 5 or not n > -9223372036854775807:
#             B[0] = T.float32("nan")
#         else:
#             B[0] = T.float32(1.0) / B[T.truncdiv(n, 3)]
#         while s[0] < T.float32(0.0):
#             s[0] = s[0] + T.float32(1.0)
#
#     @T.prim_func(private=True)
#     def empty(A: T.Buffer((4, 0), "float32"), C: T.Buffer((4, 0), "float32")):
#         for i in range(4 * 0):
#             C[i // T.max(0, 0), i % T.max(0, 0)] = A[i, 0]
