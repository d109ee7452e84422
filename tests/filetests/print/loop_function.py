# Loops, blocks, buffers and conditions of a loop function, before it is lowered.
# test print

from pliant.script import tir as T


@T.prim_func
def loops(a: T.handle, B: T.Buffer((4, 8), "float16"), n: T.int64):
    T.func_attr({"tir.noalias": True})
    m = T.int64()
    A = T.match_buffer(a, (m, n + 1), "float32", strides=(n + 2, 1))
    C = T.alloc_buffer((8,), "float32", scope="local")
    for i in T.parallel(m):
        for j, k in T.grid(4, n):
            with T.block("update"):
                v_i = T.axis.spatial(m, i)
                v_j, v_k = T.axis.remap("SR", [j, k])
                T.where(v_k < m * 2)
                T.reads(A[v_i, 0:n], B[v_j, 2:6])
                T.writes(C[v_j])
                with T.init():
                    C[v_j] = T.float32(0)
                C[v_j] = C[v_j] + T.Cast("float32", B[v_j, v_k % 8]) * T.exp(A[v_i, v_k])
    for i in T.vectorized(8):
        C[i] = T.max(C[i], T.float32("-inf"))
    for i in range(2, n):
        x: T.int64 = i // 2 - (n - i) * 3
        if x > 0 and not (i == n or x < -4):
            A[0, i] = T.if_then_else(x % 2 == 0, A[0, x], T.float32(1.5))
        else:
            A[0, i] = T.Select(x < 3, T.float32(0.5), T.Cast("float32", x))
    A[0, T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(2.0), 4)
    while C[0] < T.float32(10.0):
        C[0] = C[0] + T.float32(1.0)
    assert n > 0, "n is positive"
    T.evaluate(T.call_extern("int32", "f", n, T.address_of(A[0, 1]), T.int32(7)))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def loops(a: T.handle, B: T.Buffer((4, 8), "float16"), n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         A = T.match_buffer(a, (m, n + 1), "float32", strides=(n + 2, 1))
#         C = T.alloc_buffer((8,), "float32", scope="local")
#         for i in T.parallel(m):
#             for j, k in T.grid(4, n):
#                 with T.block("update"):
#                     v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                     T.where(v_k < m * 2)
#                     T.reads(A[v_i, 0:n], B[v_j, 2:6])
#                     T.writes(C[v_j])
#                     with T.init():
#                         C[v_j] = T.float32(0.0)
#                     C[v_j] = C[v_j] + T.Cast("float32", B[v_j, v_k % 8]) * T.exp(A[v_i, v_k])
#         for i in T.vectorized(8):
#             C[i] = T.max(C[i], T.float32("-inf"))
#         for i in range(2, n):
#             x: T.int64 = i // 2 - (n - i) * 3
#             if x > 0 and not (i == n or x < -4):
#                 A[0, i] = T.if_then_else(x % 2 == 0, A[0, x], T.float32(1.5))
#             else:
#                 A[0, i] = T.Select(x < 3, T.float32(0.5), T.Cast("float32", x))
#         A[0, T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(2.0), 4)
#         while C[0] < T.float32(10.0):
#             C[0] = C[0] + T.float32(1.0)
#         assert n > 0, "n is positive"
#         T.evaluate(T.call_extern("int32", "f", n, T.address_of(A[0, 1]), T.int32(7)))
