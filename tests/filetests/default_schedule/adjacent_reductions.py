# The two reduced axes of an image with channels first are one loop, in the sums and in the normalized result.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3, "h", "w"), "float32"), g: R.Tensor((3,), "float32"), b: R.Tensor((3,), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.instance_norm(x, g, b, channel_axis=1, axes=[2, 3])
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3, "h", "w"), dtype="float32"), g: R.Tensor((3,), dtype="float32"), b: R.Tensor((3,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         w = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 3, h, w), dtype="float32") = R.call_tir(cls.instance_norm, (x, g, b), out_sinfo=R.Tensor((n, 3, h, w), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def instance_norm(var_A: T.handle, B: T.Buffer((3,), "float32"), C: T.Buffer((3,), "float32"), var_T_instance_norm: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         h = T.int64()
#         w = T.int64()
#         A = T.match_buffer(var_A, (n, 3, h, w), "float32")
#         T_instance_norm = T.match_buffer(var_T_instance_norm, (n, 3, h, w), "float32")
#         rows: T.int64 = T.max(8192 // T.max(0 + h * w * 3 + 1 * 48 + h * w * 5 + 1 * 78 + h * w * 6, 1), 1)
#         for chunk in T.parallel((n * 3 + (rows - 1)) // rows):
#             first: T.int64 = chunk * rows
#             for row in range(T.min(rows, n * 3 - first)):
#                 v_ax0: T.int64 = (first + row) // 3
#                 v_ax1: T.int64 = (first + row) % 3
#                 T_instance_norm_inverse_deviation_row = T.alloc_buffer((1,), "float32", scope="local")
#                 T_instance_norm_squares_row = T.alloc_buffer((1,), "float32", scope="local")
#                 T_instance_norm_mean_row = T.alloc_buffer((1,), "float32", scope="local")
#                 T_instance_norm_sum_row = T.alloc_buffer((1,), "float32", scope="local")
#                 with T.decl_buffer((16,), "float32", scope="local") as acc:
#                     acc1 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc1[0] = T.float64(-0.0)
#                     for part in range((h * w // 16 + 63) // 64):
#                         for lane in T.vectorized(16):
#                             acc[lane] = T.float32(-0.0)
#                         for strip in range(T.min(64, h * w // 16 - part * 64)):
#                             for lane in T.vectorized(16):
#                                 acc[lane] = acc[lane] + A[(v_ax0 * 3 + v_ax1) * h * w + ((part * 64 + strip) * 16 + lane)]
#                         acc1[0] = acc1[0] + T.Cast("float64", T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]))
#                     acc2 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc2[0] = T.Cast("float64", T.float32(0.0)) + acc1[0]
#                     for tail in range(h * w - h * w // 16 * 16):
#                         acc2[0] = acc2[0] + T.Cast("float64", A[(v_ax0 * 3 + v_ax1) * h * w + (h * w // 16 * 16 + tail)])
#                     T_instance_norm_sum_row[0] = T.Cast("float32", acc2[0])
#                 T_instance_norm_mean_row[0] = T_instance_norm_sum_row[0] / T.Cast("float32", h * w)
#                 with T.decl_buffer((16,), "float32", scope="local") as acc:
#                     acc1 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc1[0] = T.float64(-0.0)
#                     for part in range((h * w // 16 + 63) // 64):
#                         for lane in T.vectorized(16):
#                             acc[lane] = T.float32(-0.0)
#                         for strip in range(T.min(64, h * w // 16 - part * 64)):
#                             for lane in T.vectorized(16):
#                                 acc[lane] = acc[lane] + (A[(v_ax0 * 3 + v_ax1) * h * w + ((part * 64 + strip) * 16 + lane)] - T_instance_norm_mean_row[0]) * (A[(v_ax0 * 3 + v_ax1) * h * w + ((part * 64 + strip) * 16 + lane)] - T_instance_norm_mean_row[0])
#                         acc1[0] = acc1[0] + T.Cast("float64", T.vector_sum("float32", acc[T.Ramp(0, 1, 16)]))
#                     acc2 = T.alloc_buffer((1,), "float64", scope="local")
#                     acc2[0] = T.Cast("float64", T.float32(0.0)) + acc1[0]
#                     for tail in range(h * w - h * w // 16 * 16):
#                         acc2[0] = acc2[0] + T.Cast("float64", (A[(v_ax0 * 3 + v_ax1) * h * w + (h * w // 16 * 16 + tail)] - T_instance_norm_mean_row[0]) * (A[(v_ax0 * 3 + v_ax1) * h * w + (h * w // 16 * 16 + tail)] - T_instance_norm_mean_row[0]))
#                     T_instance_norm_squares_row[0] = T.Cast("float32", acc2[0])
#                 T_instance_norm_inverse_deviation_row[0] = T.rsqrt(T_instance_norm_squares_row[0] / T.Cast("float32", h * w) + T.float32(1e-5))
#                 for strip in range(h * w // 16):
#                     for lane in T.vectorized(16):
#                         T_instance_norm[(v_ax0 * 3 + v_ax1) * h * w + (0 + strip * 16 + lane)] = (A[(v_ax0 * 3 + v_ax1) * h * w + (0 + strip * 16 + lane)] - T_instance_norm_mean_row[0]) * T_instance_norm_inverse_deviation_row[0] * B[v_ax1] + C[v_ax1]
#                 for strip in range(h * w % 16 // 4):
#                     for lane in T.vectorized(4):
#                         T_instance_norm[(v_ax0 * 3 + v_ax1) * h * w + (0 + h * w // 16 * 16 + strip * 4 + lane)] = (A[(v_ax0 * 3 + v_ax1) * h * w + (0 + h * w // 16 * 16 + strip * 4 + lane)] - T_instance_norm_mean_row[0]) * T_instance_norm_inverse_deviation_row[0] * B[v_ax1] + C[v_ax1]
#                 for tail in range(h * w % 16 % 4 // 1):
#                     T_instance_norm[(v_ax0 * 3 + v_ax1) * h * w + (0 + h * w // 16 * 16 + h * w % 16 // 4 * 4 + tail * 1)] = (A[(v_ax0 * 3 + v_ax1) * h * w + (0 + h * w // 16 * 16 + h * w % 16 // 4 * 4 + tail * 1)] - T_instance_norm_mean_row[0]) * T_instance_norm_inverse_deviation_row[0] * B[v_ax1] + C[v_ax1]
