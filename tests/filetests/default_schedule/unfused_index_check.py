# The indices of rows are checked in a loop of their own, because the loop that copies the rows has one more axis.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "c"), "float32"), i: R.Tensor(("m",), "int64")) -> R.Object:
        with R.dataflow():
            y = R.take(x, i, axis=0, mode="fast")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "c"), dtype="float32"), i: R.Tensor(("m",), dtype="int64")) -> R.Object:
#         n = T.int64()
#         c = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((m, c), dtype="float32") = R.call_tir(cls.take, (x, i), out_sinfo=R.Tensor((m, c), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def take(var_A: T.handle, var_B: T.handle, var_T_take: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         c = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, c), "float32")
#         B = T.match_buffer(var_B, (m,), "int64")
#         T_take = T.match_buffer(var_T_take, (m, c), "float32")
#         with T.LetStmt(T.max(8192 // T.max(1 * 48, 1), 1)) as rows:
#             for chunk in T.parallel((m + (rows - 1)) // rows):
#                 first: T.int64 = chunk * rows
#                 for row in range(T.min(rows, m - first)):
#                     v_c0: T.int64 = first + row
#                     loaded: T.int64 = B[v_c0]
#                     assert T.explain(T.Select(loaded < 0, loaded + n, loaded) >= 0 and T.Select(loaded < 0, loaded + n, loaded) < n, loaded, n), "IndexError: relax.take: index {0} is out of range for axis 0 of size {1}"
#         rows: T.int64 = T.max(8192 // T.max(c * 2, 1), 1)
#         for chunk in T.parallel((m + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, m - first)):
#                 v_ax0: T.int64 = first + row
#                 if 0 < c:
#                     loaded: T.int64 = B[v_ax0]
#                     assert 0 < n, "IndexError: index out of bounds: dim 0 of 'A' has n elements"
#                     for strip in range(c // 16):
#                         for lane in T.vectorized(16):
#                             T_take[v_ax0 * c + (0 + strip * 16 + lane)] = A[T.max(T.min(T.Select(loaded < 0, loaded + n, loaded), n - 1), 0) * c + (0 + strip * 16 + lane)]
#                     for strip in range(c % 16 // 4):
#                         for lane in T.vectorized(4):
#                             T_take[v_ax0 * c + (0 + c // 16 * 16 + strip * 4 + lane)] = A[T.max(T.min(T.Select(loaded < 0, loaded + n, loaded), n - 1), 0) * c + (0 + c // 16 * 16 + strip * 4 + lane)]
#                     for tail in range(c % 16 % 4 // 1):
#                         T_take[v_ax0 * c + (0 + c // 16 * 16 + c % 16 // 4 * 4 + tail * 1)] = A[T.max(T.min(T.Select(loaded < 0, loaded + n, loaded), n - 1), 0) * c + (0 + c // 16 * 16 + c % 16 // 4 * 4 + tail * 1)]
