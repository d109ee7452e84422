# Limits in front of a saturating conversion to int8 are removed, except if they are inside the range of int8.
# test opt --passes=LegalizeOps,FuseOps,FuseTIR,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            rounded = R.round(x)
            full = R.astype(R.clip(rounded, -128, 127), "int8")
            R.output(full)
        return full

    @R.function
    def narrow(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            narrow = R.astype(R.clip(R.round(x), -127, 127), "int8")
            R.output(narrow)
        return narrow

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             rounded: R.Tensor((n,), dtype="float32") = R.call_tir(cls.round, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             lv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.clip, (rounded,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             full: R.Tensor((n,), dtype="int8") = R.call_tir(cls.astype, (lv,), out_sinfo=R.Tensor((n,), dtype="int8"))
#             R.output(full)
#         return full
#
#     @R.function
#     def narrow(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.round, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             lv1: R.Tensor((n,), dtype="float32") = R.call_tir(cls.clip1, (lv,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             narrow: R.Tensor((n,), dtype="int8") = R.call_tir(cls.astype, (lv1,), out_sinfo=R.Tensor((n,), dtype="int8"))
#             R.output(narrow)
#         return narrow
#
#     @T.prim_func(private=True)
#     def round(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 447) // 448):
#             first: T.int64 = chunk * 448
#             for strip in range(T.min(448, n - first) // 8):
#                 compute[T.Ramp(first + strip * 8, 1, 8)] = T.round(A[T.Ramp(first + strip * 8, 1, 8)])
#             for strip in range(T.min(448, n - first) % 8 // 4):
#                 compute[T.Ramp(first + (T.min(448, n - first) // 8 * 8 + strip * 4), 1, 4)] = T.round(A[T.Ramp(first + (T.min(448, n - first) // 8 * 8 + strip * 4), 1, 4)])
#             for tail in range(T.min(n - first, 448) % 4):
#                 compute[first + (T.min(n - first, 448) // 4 * 4 + tail)] = T.round(A[first + (T.min(n - first, 448) // 4 * 4 + tail)])
#
#     @T.prim_func(private=True)
#     def clip(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 2047) // 2048):
#             first: T.int64 = chunk * 2048
#             for strip in range(T.min(2048, n - first) // 16):
#                 compute[T.Ramp(first + strip * 16, 1, 16)] = T.min(T.max(A[T.Ramp(first + strip * 16, 1, 16)], T.Broadcast(T.float32(-128.0), 16)), T.Broadcast(T.float32(127.0), 16))
#             for strip in range(T.min(n - first, 2048) // 4 % 4):
#                 compute[T.Ramp(first + (T.min(2048, n - first) // 16 * 16 + strip * 4), 1, 4)] = T.min(T.max(A[T.Ramp(first + (T.min(2048, n - first) // 16 * 16 + strip * 4), 1, 4)], T.Broadcast(T.float32(-128.0), 4)), T.Broadcast(T.float32(127.0), 4))
#             for tail in range(T.min(n - first, 2048) % 4):
#                 compute[first + (T.min(n - first, 2048) // 4 * 4 + tail)] = T.min(T.max(A[first + (T.min(n - first, 2048) // 4 * 4 + tail)], T.float32(-128.0)), T.float32(127.0))
#
#     @T.prim_func(private=True)
#     def astype(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "int8")
#         for chunk in T.parallel((n + 2687) // 2688):
#             first: T.int64 = chunk * 2688
#             for tile in range((T.min(2688, n - first) + 511) // 512):
#                 T.evaluate(T.call_extern("int64", "pliant_vec_f32_to_i8", T.address_of(compute[first + tile * 512]), T.address_of(A[first + tile * 512]), T.min(512, T.min(2688, n - first) - tile * 512)))
#
#     @T.prim_func(private=True)
#     def clip1(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for chunk in T.parallel((n + 2047) // 2048):
#             first: T.int64 = chunk * 2048
#             for strip in range(T.min(2048, n - first) // 16):
#                 compute[T.Ramp(first + strip * 16, 1, 16)] = T.min(T.max(A[T.Ramp(first + strip * 16, 1, 16)], T.Broadcast(T.float32(-127.0), 16)), T.Broadcast(T.float32(127.0), 16))
#             for strip in range(T.min(n - first, 2048) // 4 % 4):
#                 compute[T.Ramp(first + (T.min(2048, n - first) // 16 * 16 + strip * 4), 1, 4)] = T.min(T.max(A[T.Ramp(first + (T.min(2048, n - first) // 16 * 16 + strip * 4), 1, 4)], T.Broadcast(T.float32(-127.0), 4)), T.Broadcast(T.float32(127.0), 4))
#             for tail in range(T.min(n - first, 2048) % 4):
#                 compute[first + (T.min(n - first, 2048) // 4 * 4 + tail)] = T.min(T.max(A[first + (T.min(n - first, 2048) // 4 * 4 + tail)], T.float32(-127.0)), T.float32(127.0))
