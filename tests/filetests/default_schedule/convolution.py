# A convolution with non-constant weights: the input is padded, and each tap of the filters becomes a call of the matmul kernel.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3, "h", 9), "float32"), w: R.Tensor((5, 3, 3, 2), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.conv2d(x, w, strides=[2, 1], padding=1)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3, "h", 9), dtype="float32"), w: R.Tensor((5, 3, 3, 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 5, (h + 1) // 2, 10), dtype="float32") = R.call_tir(cls.conv2d, (x, w), out_sinfo=R.Tensor((n, 5, (h + 1) // 2, 10), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def conv2d(var_A: T.handle, B: T.Buffer((5, 3, 3, 2), "float32"), var_conv2d: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         h = T.int64()
#         A = T.match_buffer(var_A, (n, 3, h, 9), "float32")
#         conv2d = T.match_buffer(var_conv2d, (n, 5, (h + 1) // 2, 10), "float32")
#         pad_temp = T.alloc_buffer((n, 3, (h + 1) // 2 * 2 + 2, 11), "float32")
#         with T.LetStmt(T.max(8192 // T.max(11 * 72, 1), 1)) as rows:
#             for chunk in T.parallel((n * 3 * ((h + 1) // 2 * 2 + 2) + (rows - 1)) // rows):
#                 first: T.int64 = chunk * rows
#                 for row in range(T.min(rows, n * 3 * ((h + 1) // 2 * 2 + 2) - first)):
#                     fused: T.int64 = (first + row) // ((h + 1) // 2 * 2 + 2)
#                     v_ax2: T.int64 = (first + row) % ((h + 1) // 2 * 2 + 2)
#                     for strip in range(1 // 16):
#                         for lane in T.vectorized(16):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 0 + strip * 16 + lane] = T.float32(0.0)
#                     for strip in range(1 % 16 // 4):
#                         for lane in T.vectorized(4):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 0 + 1 // 16 * 16 + strip * 4 + lane] = T.float32(0.0)
#                     for tail in range(1 % 16 % 4 // 1):
#                         pad_temp[fused // 3, fused % 3, v_ax2, 0 + 1 // 16 * 16 + 1 % 16 // 4 * 4 + tail * 1] = T.float32(0.0)
#                     for strip in range(9 // 16):
#                         for lane in T.vectorized(16):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 1 + (0 + strip * 16 + lane)] = T.if_then_else(v_ax2 >= 1 and v_ax2 - 1 < h, A[fused // 3, fused % 3, v_ax2 - 1, 1 + (0 + strip * 16 + lane) - 1], T.float32(0.0))
#                     for strip in range(9 % 16 // 4):
#                         for lane in T.vectorized(4):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 1 + (0 + 9 // 16 * 16 + strip * 4 + lane)] = T.if_then_else(v_ax2 >= 1 and v_ax2 - 1 < h, A[fused // 3, fused % 3, v_ax2 - 1, 1 + (0 + 9 // 16 * 16 + strip * 4 + lane) - 1], T.float32(0.0))
#                     for tail in range(9 % 16 % 4 // 1):
#                         pad_temp[fused // 3, fused % 3, v_ax2, 1 + (0 + 9 // 16 * 16 + 9 % 16 // 4 * 4 + tail * 1)] = T.if_then_else(v_ax2 >= 1 and v_ax2 - 1 < h, A[fused // 3, fused % 3, v_ax2 - 1, 1 + (0 + 9 // 16 * 16 + 9 % 16 // 4 * 4 + tail * 1) - 1], T.float32(0.0))
#                     for strip in range(1 // 16):
#                         for lane in T.vectorized(16):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 1 + (9 + (0 + strip * 16 + lane))] = T.float32(0.0)
#                     for strip in range(1 % 16 // 4):
#                         for lane in T.vectorized(4):
#                             pad_temp[fused // 3, fused % 3, v_ax2, 1 + (9 + (0 + 1 // 16 * 16 + strip * 4 + lane))] = T.float32(0.0)
#                     for tail in range(1 % 16 % 4 // 1):
#                         pad_temp[fused // 3, fused % 3, v_ax2, 1 + (9 + (0 + 1 // 16 * 16 + 1 % 16 // 4 * 4 + tail * 1))] = T.float32(0.0)
#         for v_ax0, v_ry, v_rx in T.grid(n, 3, 2):
#             T.evaluate(T.call_kernel("matmul", x=T.view(B, [(h + 1) // 2, 5, 3], strides=[0, 1 * 3 * 3 * 2, 1 * 3 * 2], offset=v_ry * 2 + v_rx), weight=T.view(pad_temp, [(h + 1) // 2, 3, 10], strides=[2 * (1 * 11), 1 * ((h + 1) // 2 * 2 + 2) * 11, 1], offset=(v_ax0 * 3 * ((h + 1) // 2 * 2 + 2) + (0 * 2 + v_ry)) * 11 + (0 + v_rx)), out=T.view(conv2d, [(h + 1) // 2, 5, 10], strides=[1 * 10, 1 * ((h + 1) // 2) * 10, 1], offset=v_ax0 * 5 * ((h + 1) // 2) * 10), accumulate=T.Cast("int64", 0 < v_ry or 0 < v_rx)))
