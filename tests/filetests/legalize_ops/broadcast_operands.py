# Broadcast operands: sizes that are not provably compatible are checked at run time.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # No size relation is known: the result size is computed at run time.
    @R.function
    def unknown(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m", 1), "float32")) -> R.Object:
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.subtract(b, y)
            R.output(a, b, c)
        return (a, b, c)

    # Broadcasts that are proved valid need no check.
    @R.function
    def proved(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            a = R.add(x, y)
            b = R.multiply(a, R.ones(R.shape([1, m]), "float32"))
            R.output(b)
        return b

    # One of the broadcast sizes is a constant.
    @R.function
    def constant(x: R.Tensor(("n",), "float32"), y: R.Tensor((1,), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.maximum(x, R.broadcast_to(y, R.shape([1])))
            b = R.less(R.ones(R.shape([n + 2]), "float32"), a)
            R.output(b)
        return b

    @R.function
    def three(c: R.Tensor(("n",), "bool"), x: R.Tensor(("m",), "float32"), y: R.Tensor((2, "n"), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.where(c, x, y)
            R.output(a)
        return a

    @R.function
    def stretched(x: R.Tensor(("n", 2), "float32"), s: R.Shape(["k", "n"])) -> R.Object:
        n = T.int64()
        k = T.int64()
        with R.dataflow():
            a = R.broadcast_to(x, R.shape([k, n, 2]))
            b = R.matmul(a, R.ones(R.shape([n, 2, 3]), "float32"))
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def unknown(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("m", 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32") = R.call_tir(cls.add, (x, y), out_sinfo=R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32"))
#             b: R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32") = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32"))
#             c: R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32") = R.call_tir(cls.subtract, (b, y), out_sinfo=R.Tensor((T.Select(n == 1, m, n), 4), dtype="float32"))
#             R.output(a, b, c)
#         return (a, b, c)
#
#     @R.function
#     def proved(x: R.Tensor(("n", "m"), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.add1, (x, y), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             lv: R.Tensor((1, m), dtype="float32") = R.call_tir(cls.ones, R.tuple(), out_sinfo=R.Tensor((1, m), dtype="float32"))
#             b: R.Tensor((n, m), dtype="float32") = R.call_tir(cls.multiply, (a, lv), out_sinfo=R.Tensor((n, m), dtype="float32"))
#             R.output(b)
#         return b
#
#     @R.function
#     def constant(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor((1,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((1,), dtype="float32") = R.call_tir(cls.broadcast_to, (y,), out_sinfo=R.Tensor((1,), dtype="float32"))
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.maximum, (x, lv), out_sinfo=R.Tensor((n,), dtype="float32"))
#             lv1: R.Tensor((n + 2,), dtype="float32") = R.call_tir(cls.ones1, R.tuple(), out_sinfo=R.Tensor((n + 2,), dtype="float32"), tir_vars=R.shape([n]))
#             b: R.Tensor((n + 2,), dtype="bool") = R.call_tir(cls.less, (lv1, a), out_sinfo=R.Tensor((n + 2,), dtype="bool"))
#             R.output(b)
#         return b
#
#     @R.function
#     def three(c: R.Tensor(("n",), dtype="bool"), x: R.Tensor(("m",), dtype="float32"), y: R.Tensor((2, "n"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((2, T.Select(n == 1, m, n)), dtype="float32") = R.call_tir(cls.where, (c, x, y), out_sinfo=R.Tensor((2, T.Select(n == 1, m, n)), dtype="float32"))
#             R.output(a)
#         return a
#
#     @R.function
#     def stretched(x: R.Tensor(("n", 2), dtype="float32"), s: R.Shape(["k", "n"])) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((k, n, 2), dtype="float32") = R.call_tir(cls.broadcast_to1, (x,), out_sinfo=R.Tensor((k, n, 2), dtype="float32"))
#             lv: R.Tensor((n, 2, 3), dtype="float32") = R.call_tir(cls.ones2, R.tuple(), out_sinfo=R.Tensor((n, 2, 3), dtype="float32"))
#             b: R.Tensor((T.Select(k == 1, n, k), n, 3), dtype="float32") = R.call_tir(cls.matmul, (a, lv), out_sinfo=R.Tensor((T.Select(k == 1, n, k), n, 3), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         n_m = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (m, 1), "float32")
#         T_add = T.match_buffer(var_T_add, (n_m, 4), "float32")
#         with T.block("T_add_check"):
#             T.reads()
#             T.writes()
#             assert (n == 1 or n == n_m) and (m == 1 or m == n_m), "ShapeError: relax.add: dims n and m (axis -2) cannot be broadcast together: x1 is R.Tensor((n, 4), dtype=\"float32\"), x2 is R.Tensor((m, 1), dtype=\"float32\")"
#         for ax0, ax1 in T.grid(n_m, 4):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[T.Select(n == 1, 0, v_ax0), v_ax1], B[T.Select(m == 1, 0, v_ax0), 0])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[T.Select(n == 1, 0, v_ax0), v_ax1] + B[T.Select(m == 1, 0, v_ax0), 0]
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n_m = T.int64()
#         A = T.match_buffer(var_A, (n_m, 4), "float32")
#         compute = T.match_buffer(var_compute, (n_m, 4), "float32")
#         for i0, i1 in T.grid(n_m, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def subtract(var_A: T.handle, var_B: T.handle, var_T_subtract: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n_m = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n_m, 4), "float32")
#         B = T.match_buffer(var_B, (m, 1), "float32")
#         T_subtract = T.match_buffer(var_T_subtract, (n_m, 4), "float32")
#         with T.block("T_subtract_check"):
#             T.reads()
#             T.writes()
#             assert m == 1 or m == n_m, "ShapeError: relax.subtract: dims n and m (axis -2) cannot be broadcast together: x1 is R.Tensor((T.Select(n == 1, m, n), 4), dtype=\"float32\"), x2 is R.Tensor((m, 1), dtype=\"float32\")"
#         for ax0, ax1 in T.grid(n_m, 4):
#             with T.block("T_subtract"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[T.Select(m == 1, 0, v_ax0), 0])
#                 T.writes(T_subtract[v_ax0, v_ax1])
#                 T_subtract[v_ax0, v_ax1] = A[v_ax0, v_ax1] - B[T.Select(m == 1, 0, v_ax0), 0]
#
#     @T.prim_func(private=True)
#     def add1(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (m,), "float32")
#         T_add = T.match_buffer(var_T_add, (n, m), "float32")
#         for ax0, ax1 in T.grid(n, m):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax1])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax1]
#
#     @T.prim_func(private=True)
#     def ones(var_T_full: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         T_full = T.match_buffer(var_T_full, (1, m), "float32")
#         for ax0, ax1 in T.grid(1, m):
#             with T.block("T_full"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads()
#                 T.writes(T_full[v_ax0, v_ax1])
#                 T_full[v_ax0, v_ax1] = T.float32(1.0)
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_B: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (1, m), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n, m), "float32")
#         for ax0, ax1 in T.grid(n, m):
#             with T.block("T_multiply"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[0, v_ax1])
#                 T.writes(T_multiply[v_ax0, v_ax1])
#                 T_multiply[v_ax0, v_ax1] = A[v_ax0, v_ax1] * B[0, v_ax1]
#
#     @T.prim_func(private=True)
#     def broadcast_to(A: T.Buffer((1,), "float32"), T_broadcast_to: T.Buffer((1,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0 in range(1):
#             with T.block("T_broadcast_to"):
#                 v_ax0 = T.axis.spatial(1, ax0)
#                 T.reads(A[0])
#                 T.writes(T_broadcast_to[v_ax0])
#                 T_broadcast_to[v_ax0] = A[0]
#
#     @T.prim_func(private=True)
#     def maximum(var_A: T.handle, B: T.Buffer((1,), "float32"), var_T_maximum: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         T_maximum = T.match_buffer(var_T_maximum, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_maximum"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0], B[0])
#                 T.writes(T_maximum[v_ax0])
#                 T_maximum[v_ax0] = T.max(A[v_ax0], B[0])
#
#     @T.prim_func(private=True)
#     def ones1(var_T_full: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         T_full = T.match_buffer(var_T_full, (n + 2,), "float32")
#         for ax0 in range(n + 2):
#             with T.block("T_full"):
#                 v_ax0 = T.axis.spatial(n + 2, ax0)
#                 T.reads()
#                 T.writes(T_full[v_ax0])
#                 T_full[v_ax0] = T.float32(1.0)
#
#     @T.prim_func(private=True)
#     def less(var_A: T.handle, var_B: T.handle, var_T_less: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n + 2,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         T_less = T.match_buffer(var_T_less, (n + 2,), "bool")
#         with T.block("T_less_check"):
#             T.reads()
#             T.writes()
#             assert n == 1 or n == n + 2, "ShapeError: relax.less: dims n + 2 and n (axis -1) cannot be broadcast together: x1 is R.Tensor((n + 2,), dtype=\"float32\"), x2 is R.Tensor((n,), dtype=\"float32\")"
#         for ax0 in range(n + 2):
#             with T.block("T_less"):
#                 v_ax0 = T.axis.spatial(n + 2, ax0)
#                 T.reads(A[v_ax0], B[T.Select(n == 1, 0, v_ax0)])
#                 T.writes(T_less[v_ax0])
#                 T_less[v_ax0] = A[v_ax0] < B[T.Select(n == 1, 0, v_ax0)]
#
#     @T.prim_func(private=True)
#     def where(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_T_where: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         n_m = T.int64()
#         A = T.match_buffer(var_A, (n,), "bool")
#         B = T.match_buffer(var_B, (m,), "float32")
#         C = T.match_buffer(var_C, (2, n), "float32")
#         T_where = T.match_buffer(var_T_where, (2, n_m), "float32")
#         with T.block("T_where_check"):
#             T.reads()
#             T.writes()
#             assert (n == 1 or n == n_m) and (m == 1 or m == n_m), "ShapeError: relax.where: dims n and m (axis -1) cannot be broadcast together: condition is R.Tensor((n,), dtype=\"bool\"), x1 is R.Tensor((m,), dtype=\"float32\"), x2 is R.Tensor((2, n), dtype=\"float32\")"
#         for ax0, ax1 in T.grid(2, n_m):
#             with T.block("T_where"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[T.Select(n == 1, 0, v_ax1)], B[T.Select(m == 1, 0, v_ax1)], C[v_ax0, T.Select(n == 1, 0, v_ax1)])
#                 T.writes(T_where[v_ax0, v_ax1])
#                 T_where[v_ax0, v_ax1] = T.Select(A[T.Select(n == 1, 0, v_ax1)], B[T.Select(m == 1, 0, v_ax1)], C[v_ax0, T.Select(n == 1, 0, v_ax1)])
#
#     @T.prim_func(private=True)
#     def broadcast_to1(var_A: T.handle, var_T_broadcast_to: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         k = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "float32")
#         T_broadcast_to = T.match_buffer(var_T_broadcast_to, (k, n, 2), "float32")
#         for ax0, ax1, ax2 in T.grid(k, n, 2):
#             with T.block("T_broadcast_to"):
#                 v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                 T.reads(A[v_ax1, v_ax2])
#                 T.writes(T_broadcast_to[v_ax0, v_ax1, v_ax2])
#                 T_broadcast_to[v_ax0, v_ax1, v_ax2] = A[v_ax1, v_ax2]
#
#     @T.prim_func(private=True)
#     def ones2(var_T_full: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         T_full = T.match_buffer(var_T_full, (n, 2, 3), "float32")
#         for ax0, ax1, ax2 in T.grid(n, 2, 3):
#             with T.block("T_full"):
#                 v_ax0, v_ax1, v_ax2 = T.axis.remap("SSS", [ax0, ax1, ax2])
#                 T.reads()
#                 T.writes(T_full[v_ax0, v_ax1, v_ax2])
#                 T_full[v_ax0, v_ax1, v_ax2] = T.float32(1.0)
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         k = T.int64()
#         n = T.int64()
#         k_n = T.int64()
#         A = T.match_buffer(var_A, (k, n, 2), "float32")
#         B = T.match_buffer(var_B, (n, 2, 3), "float32")
#         matmul = T.match_buffer(var_matmul, (k_n, n, 3), "float32")
#         with T.block("matmul_check"):
#             T.reads()
#             T.writes()
#             assert (k == 1 or k == k_n) and (n == 1 or n == k_n), "ShapeError: relax.matmul: dims k and n (axis -3) cannot be broadcast together: x1 is R.Tensor((k, n, 2), dtype=\"float32\"), x2 is R.Tensor((n, 2, 3), dtype=\"float32\")"
#         for b0, i, j, k1 in T.grid(k_n, n, 3, 2):
#             with T.block("matmul"):
#                 v_b0, v_i, v_j, v_k = T.axis.remap("SSSR", [b0, i, j, k1])
#                 T.reads(A[T.Select(k == 1, 0, v_b0), v_i, v_k], B[T.Select(n == 1, 0, v_b0), v_k, v_j])
#                 T.writes(matmul[v_b0, v_i, v_j])
#                 with T.init():
#                     matmul[v_b0, v_i, v_j] = T.float32(0.0)
#                 matmul[v_b0, v_i, v_j] = matmul[v_b0, v_i, v_j] + A[T.Select(k == 1, 0, v_b0), v_i, v_k] * B[T.Select(n == 1, 0, v_b0), v_k, v_j]
