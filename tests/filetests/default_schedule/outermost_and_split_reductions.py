# Reductions in unusual positions: an outermost reduction loop, and a predicate that depends on a split reduction axis.
# test opt --passes=DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The reduction loop is outermost; the init is moved before it.
    @T.prim_func(private=True)
    def outer(var_A: T.handle, var_C: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(var_A, (n, m), "float32")
        C = T.match_buffer(var_C, (n,), "float32")
        for k, i in T.grid(m, n):
            with T.block("C"):
                v_k, v_i = T.axis.remap("RS", [k, i])
                with T.init():
                    C[v_i] = T.float32(0.0)
                C[v_i] = C[v_i] + A[v_i, v_k]

    # The predicate depends on the split reduction: the init stays in the loop, and a second one before it covers empty reductions.
    @T.prim_func(private=True)
    def split(var_A: T.handle, var_C: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(var_A, (n, m), "float32")
        C = T.match_buffer(var_C, (n,), "float32")
        for i, ko, ki in T.grid(n, (m + 3) // 4, 4):
            with T.block("C"):
                v_i = T.axis.spatial(n, i)
                v_k = T.axis.reduce(m, ko * 4 + ki)
                T.where(ko * 4 + ki < m)
                with T.init():
                    C[v_i] = T.float32(-1.0)
                C[v_i] = T.max(C[v_i], A[v_i, v_k])

    # Two blocks and a let in one reduction loop.
    @T.prim_func(private=True)
    def pair(var_A: T.handle, var_C: T.handle, var_D: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(var_A, (n, m), "float32")
        C = T.match_buffer(var_C, (n,), "float32")
        D = T.match_buffer(var_D, (n,), "float32")
        for i in range(n):
            for k in range(m):
                with T.block("C"):
                    v_i, v_k = T.axis.remap("SR", [i, k])
                    with T.init():
                        C[v_i] = T.float32(0.0)
                    C[v_i] = C[v_i] + A[v_i, v_k]
                j: T.int64 = n - 1 - i
                with T.block("D"):
                    v_i = T.axis.spatial(n, j)
                    v_k = T.axis.reduce(m, k)
                    with T.init():
                        D[v_i] = T.float32(2.0)
                    D[v_i] = D[v_i] + A[v_i, v_k]

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n = T.int64()
        m = T.int64()
        cls = Module
        a = R.call_tir(cls.outer, (x,), out_sinfo=R.Tensor((n,), "float32"))
        b = R.call_tir(cls.split, (x,), out_sinfo=R.Tensor((n,), "float32"))
        c = R.call_tir(
            cls.pair, (x,), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n,), "float32")]
        )
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def outer(var_A: T.handle, var_C: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         C = T.match_buffer(var_C, (n,), "float32")
#         for v_i in range(n):
#             C[v_i] = T.float32(0.0)
#         for v_k, v_i in T.grid(m, n):
#             C[v_i] = C[v_i] + A[v_i, v_k]
#
#     @T.prim_func(private=True)
#     def split(var_A: T.handle, var_C: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         C = T.match_buffer(var_C, (n,), "float32")
#         for i in range(n):
#             if m <= 0:
#                 C[i] = T.float32(-1.0)
#             for ko, ki in T.grid((m + 3) // 4, 4):
#                 if ko * 4 + ki < m:
#                     if ko * 4 + ki == 0:
#                         C[i] = T.float32(-1.0)
#                     C[i] = T.max(C[i], A[i, ko * 4 + ki])
#
#     @T.prim_func(private=True)
#     def pair(var_A: T.handle, var_C: T.handle, var_D: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         C = T.match_buffer(var_C, (n,), "float32")
#         D = T.match_buffer(var_D, (n,), "float32")
#         for i in range(n):
#             if m <= 0:
#                 C[i] = T.float32(0.0)
#             if m <= 0:
#                 j: T.int64 = n - 1 - i
#                 if j >= 0 and j < 0 + n:
#                     D[j] = T.float32(2.0)
#             for k in range(m):
#                 if k == 0:
#                     C[i] = T.float32(0.0)
#                 C[i] = C[i] + A[i, k]
#                 j: T.int64 = n - 1 - i
#                 if k == 0:
#                     D[j] = T.float32(2.0)
#                 D[j] = D[j] + A[j, k]
#
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.outer, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         b: R.Tensor((n,), dtype="float32") = R.call_tir(cls.split, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         c: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = R.call_tir(cls.pair, (x,), out_sinfo=[R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")])
#         return (a, b, c)
