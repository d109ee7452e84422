# The last axis has size 1: the loop before it is vectorized, and rows are not split.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,InlineInjective,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 64, 1), "float32")) -> R.Object:
        with R.dataflow():
            y = R.strided_slice(x, axes=[1], begin=[0], end=[64], strides=[2])
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 64, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 32, 1), dtype="float32") = R.call_tir(cls.strided_slice, (x,), out_sinfo=R.Tensor((n, 32, 1), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def strided_slice(var_A: T.handle, var_T_strided_slice: T.handle):
#         T.func_attr({"tir.noalias": True, "op_pattern": 2})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 64, 1), "float32")
#         T_strided_slice = T.match_buffer(var_T_strided_slice, (n, 32, 1), "float32")
#         rows: T.int64 = T.max(8192 // T.max(32 * 2, 1), 1)
#         for chunk in T.parallel((n + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n - first)):
#                 v_ax0: T.int64 = first + row
#                 for strip in range(32 // 16):
#                     for lane in T.vectorized(16):
#                         T_strided_slice[v_ax0, 0 + strip * 16 + lane, 0] = A[v_ax0, (0 + strip * 16 + lane) * 2, 0]
