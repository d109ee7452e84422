# The check of the indices runs in the loop that gathers, which does not clamp the checked index.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "c"), "float32"), i: R.Tensor(("n", "c"), "int64")) -> R.Object:
        with R.dataflow():
            y = R.gather_elements(x, i, axis=1)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "c"), dtype="float32"), i: R.Tensor(("n", "c"), dtype="int64")) -> R.Object:
#         n = T.int64()
#         c = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, c), dtype="float32") = R.call_tir(cls.gather_elements, (x, i), out_sinfo=R.Tensor((n, c), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def gather_elements(var_A: T.handle, var_B: T.handle, var_T_gather_elements: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         c = T.int64()
#         A = T.match_buffer(var_A, (n, c), "float32")
#         B = T.match_buffer(var_B, (n, c), "int64")
#         T_gather_elements = T.match_buffer(var_T_gather_elements, (n, c), "float32")
#         rows: T.int64 = T.max(8192 // T.max(c * 12, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 for v_ax1 in range(c):
#                     loaded: T.int64 = B[v_ax0 * c + v_ax1]
#                     assert T.explain(T.Select(loaded < 0, loaded + c, loaded) >= 0 and T.Select(loaded < 0, loaded + c, loaded) < c, loaded, c), "IndexError: relax.gather_elements: index {0} is out of range for axis 1 of size {1}"
#                     T_gather_elements[v_ax0 * c + v_ax1] = A[T.max(T.min(v_ax0, n - 1), 0) * c + T.Select(loaded < 0, loaded + c, loaded)]
