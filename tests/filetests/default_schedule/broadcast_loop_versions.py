# Each operand may have size 1: the loop is versioned for each case, and every version is vectorized.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,InlineInjective,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        with R.dataflow():
            a = R.add(x, y)
            b = R.negative(a)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((T.Select(n == 1, m, n),), dtype="float32") = R.call_tir(cls.fused_add_negative, (x, y), out_sinfo=R.Tensor((T.Select(n == 1, m, n),), dtype="float32"))
#             R.output(b)
#         return b
#
#     @T.prim_func(private=True)
#     def fused_add_negative(var_x: T.handle, var_y: T.handle, var_b: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         n_m = T.int64()
#         x = T.match_buffer(var_x, (n,), "float32")
#         y = T.match_buffer(var_y, (m,), "float32")
#         b = T.match_buffer(var_b, (n_m,), "float32")
#         with T.Assert((n == 1 or n == n_m) and (m == 1 or m == n_m), "ShapeError: relax.add: dims n and m (axis -1) cannot be broadcast together: x1 is R.Tensor((n,), dtype=\"float32\"), x2 is R.Tensor((m,), dtype=\"float32\")"):
#             pass
#         if n == 1:
#             if m == 1:
#                 for chunk in T.parallel((n_m + 2047) // 2048):
#                     first: T.int64 = chunk * 2048
#                     for strip in range(T.min(2048, n_m - first) // 16):
#                         for lane in T.vectorized(16):
#                             b[first + (0 + strip * 16 + lane)] = (x[0] + y[0]) * T.float32(-1.0)
#                     for strip in range(T.min(2048, n_m - first) % 16 // 4):
#                         for lane in T.vectorized(4):
#                             b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] = (x[0] + y[0]) * T.float32(-1.0)
#                     for tail in range(T.min(2048, n_m - first) % 16 % 4 // 1):
#                         b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] = (x[0] + y[0]) * T.float32(-1.0)
#             else:
#                 for chunk in T.parallel((n_m + 2047) // 2048):
#                     first: T.int64 = chunk * 2048
#                     for strip in range(T.min(2048, n_m - first) // 16):
#                         for lane in T.vectorized(16):
#                             b[first + (0 + strip * 16 + lane)] = (x[0] + y[first + (0 + strip * 16 + lane)]) * T.float32(-1.0)
#                     for strip in range(T.min(2048, n_m - first) % 16 // 4):
#                         for lane in T.vectorized(4):
#                             b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] = (x[0] + y[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)]) * T.float32(-1.0)
#                     for tail in range(T.min(2048, n_m - first) % 16 % 4 // 1):
#                         b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] = (x[0] + y[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)]) * T.float32(-1.0)
#         else:
#             if m == 1:
#                 for chunk in T.parallel((n_m + 2047) // 2048):
#                     first: T.int64 = chunk * 2048
#                     for strip in range(T.min(2048, n_m - first) // 16):
#                         for lane in T.vectorized(16):
#                             b[first + (0 + strip * 16 + lane)] = (x[first + (0 + strip * 16 + lane)] + y[0]) * T.float32(-1.0)
#                     for strip in range(T.min(2048, n_m - first) % 16 // 4):
#                         for lane in T.vectorized(4):
#                             b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] = (x[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] + y[0]) * T.float32(-1.0)
#                     for tail in range(T.min(2048, n_m - first) % 16 % 4 // 1):
#                         b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] = (x[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] + y[0]) * T.float32(-1.0)
#             else:
#                 for chunk in T.parallel((n_m + 2047) // 2048):
#                     first: T.int64 = chunk * 2048
#                     for strip in range(T.min(2048, n_m - first) // 16):
#                         for lane in T.vectorized(16):
#                             b[first + (0 + strip * 16 + lane)] = (x[first + (0 + strip * 16 + lane)] + y[first + (0 + strip * 16 + lane)]) * T.float32(-1.0)
#                     for strip in range(T.min(2048, n_m - first) % 16 // 4):
#                         for lane in T.vectorized(4):
#                             b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] = (x[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)] + y[first + (0 + T.min(2048, n_m - first) // 16 * 16 + strip * 4 + lane)]) * T.float32(-1.0)
#                     for tail in range(T.min(2048, n_m - first) % 16 % 4 // 1):
#                         b[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] = (x[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)] + y[first + (0 + T.min(2048, n_m - first) // 16 * 16 + T.min(2048, n_m - first) % 16 // 4 * 4 + tail * 1)]) * T.float32(-1.0)
