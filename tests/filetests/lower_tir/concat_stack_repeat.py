# Concatenating, stacking, repeating and tiling, lowered to vectorized loops.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule,LowerInitBlock,ConvertBlocksToLoops,UnrollLoop,FlattenBuffer,Simplify,VectorizeLoop,SimplifyVectors

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def joined(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(("n + m",), "float32"):
        with R.dataflow():
            gv = R.concat((x, y), axis=0)
            R.output(gv)
        return gv

    @R.function
    def interleaved(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            gv = R.stack((x, x), axis=1)
            R.output(gv)
        return gv

    @R.function
    def repeated(x: R.Tensor(("n",), "int8")) -> R.Tensor(("n * 2",), "int8"):
        with R.dataflow():
            gv = R.repeat(x, 2, axis=0)
            R.output(gv)
        return gv

    @R.function
    def tiled(x: R.Tensor(("n",), "bool")) -> R.Tensor(("n * 3",), "bool"):
        with R.dataflow():
            gv = R.tile(x, (3,))
            R.output(gv)
        return gv

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def joined(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Tensor(("m + n",), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             gv: R.Tensor((m + n,), dtype="float32") = R.call_tir(cls.concat, (x, y), out_sinfo=R.Tensor((m + n,), dtype="float32"))
#             R.output(gv)
#         return gv
#
#     @R.function
#     def interleaved(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             gv: R.Tensor((n, 2), dtype="float32") = R.call_tir(cls.stack, (x, x), out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(gv)
#         return gv
#
#     @R.function
#     def repeated(x: R.Tensor(("n",), dtype="int8")) -> R.Tensor(("n * 2",), dtype="int8"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             gv: R.Tensor((n * 2,), dtype="int8") = R.call_tir(cls.repeat, (x,), out_sinfo=R.Tensor((n * 2,), dtype="int8"))
#             R.output(gv)
#         return gv
#
#     @R.function
#     def tiled(x: R.Tensor(("n",), dtype="bool")) -> R.Tensor(("n * 3",), dtype="bool"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             gv: R.Tensor((n * 3,), dtype="bool") = R.call_tir(cls.tile, (x,), out_sinfo=R.Tensor((n * 3,), dtype="bool"))
#             R.output(gv)
#         return gv
#
#     @T.prim_func(private=True)
#     def concat(var_A: T.handle, var_B: T.handle, var_T_concat: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (m,), "float32")
#         T_concat = T.match_buffer(var_T_concat, (n + m,), "float32")
#         cut: T.int64 = T.max(T.min(T.max(n, 0), n + m), 0)
#         for chunk in T.parallel((cut + 4095) // 4096):
#             first: T.int64 = chunk * 4096
#             for strip in range(T.min(4096, cut - first) // 16):
#                 T_concat[T.Ramp(first + strip * 16, 1, 16)] = A[T.Ramp(first + strip * 16, 1, 16)]
#             for strip in range(T.min(cut - first, 4096) // 4 % 4):
#                 T_concat[T.Ramp(first + (T.min(4096, cut - first) // 16 * 16 + strip * 4), 1, 4)] = A[T.Ramp(first + (T.min(4096, cut - first) // 16 * 16 + strip * 4), 1, 4)]
#             for tail in range(T.min(cut - first, 4096) % 4):
#                 T_concat[first + (T.min(cut - first, 4096) // 4 * 4 + tail)] = A[first + (T.min(cut - first, 4096) // 4 * 4 + tail)]
#         for chunk in T.parallel((n + m - cut + 4095) // 4096):
#             first: T.int64 = chunk * 4096
#             for strip in range(T.min(4096, n + m - cut - first) // 16):
#                 T_concat[T.Ramp(cut + (first + strip * 16), 1, 16)] = B[T.Ramp(cut + (first + strip * 16) - n, 1, 16)]
#             for strip in range(T.min(4096, n + m - cut - first) // 4 % 4):
#                 T_concat[T.Ramp(cut + (first + (T.min(4096, n + m - cut - first) // 16 * 16 + strip * 4)), 1, 4)] = B[T.Ramp(cut + (first + (T.min(4096, n + m - cut - first) // 16 * 16 + strip * 4)) - n, 1, 4)]
#             for tail in range(T.min(4096, n + m - cut - first) % 4):
#                 T_concat[cut + (first + (T.min(4096, n + m - cut - first) // 4 * 4 + tail))] = B[cut + (first + (T.min(4096, n + m - cut - first) // 4 * 4 + tail)) - n]
#
#     @T.prim_func(private=True)
#     def stack(var_A: T.handle, var_B: T.handle, var_T_stack: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         T_stack = T.match_buffer(var_T_stack, (n, 2), "float32")
#         for chunk in T.parallel((n + 169) // 170):
#             first: T.int64 = chunk * 170
#             for row in range(T.min(170, n - first)):
#                 v_ax0: T.int64 = first + row
#                 T_stack[v_ax0 * 2] = A[v_ax0]
#                 T_stack[v_ax0 * 2 + 1] = B[v_ax0]
#
#     @T.prim_func(private=True)
#     def repeat(var_A: T.handle, var_T_repeat: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int8")
#         T_repeat = T.match_buffer(var_T_repeat, (n * 2,), "int8")
#         for chunk in T.parallel((n + 340) // 341):
#             first: T.int64 = chunk * 341
#             for row in range(T.min(341, n - first)):
#                 run: T.int64 = first + row
#                 T_repeat[run * 2] = A[run]
#                 T_repeat[run * 2 + 1] = A[run]
#
#     @T.prim_func(private=True)
#     def tile(var_A: T.handle, var_T_tile: T.handle):
#         T.func_attr({"tir.noalias": True, "tir.flat": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "bool")
#         T_tile = T.match_buffer(var_T_tile, (n * 3,), "bool")
#         if 0 < n:
#             rows: T.int64 = T.max(8192 // T.max(n * 12, 1), 1)
#             for chunk in T.parallel(((n * 3 - 1) // n + rows) // rows):
#                 first: T.int64 = chunk * rows
#                 for row in range(T.min(rows, (n * 3 - 1) // n + 1 - first)):
#                     run: T.int64 = first + row
#                     for strip in range(T.max(T.min(n, n * 3 - run * n), 0) // 64):
#                         T_tile[T.Ramp(run * n + strip * 64, 1, 64)] = A[T.Ramp(strip * 64, 1, 64)]
#                     for strip in range(T.max(T.min(n, n * 3 - run * n), 0) % 64 // 16):
#                         T_tile[T.Ramp(run * n + (T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + strip * 16), 1, 16)] = A[T.Ramp(T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + strip * 16, 1, 16)]
#                     for strip in range(T.max(T.min(n, n * 3 - run * n), 0) % 64 % 16 // 4):
#                         T_tile[T.Ramp(run * n + (T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + T.max(T.min(n, n * 3 - run * n), 0) % 64 // 16 * 16 + strip * 4), 1, 4)] = A[T.Ramp(T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + T.max(T.min(n, n * 3 - run * n), 0) % 64 // 16 * 16 + strip * 4, 1, 4)]
#                     for tail in range(T.max(T.min(n, n * 3 - run * n), 0) % 64 % 16 % 4):
#                         T_tile[run * n + (T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + T.max(T.min(n, n * 3 - run * n), 0) % 64 // 16 * 16 + T.max(T.min(n, n * 3 - run * n), 0) % 64 % 16 // 4 * 4 + tail)] = A[T.max(T.min(n, n * 3 - run * n), 0) // 64 * 64 + T.max(T.min(n, n * 3 - run * n), 0) % 64 // 16 * 16 + T.max(T.min(n, n * 3 - run * n), 0) % 64 % 16 // 4 * 4 + tail]
#         else:
#             for chunk in T.parallel((n * 3 + 681) // 682):
#                 first: T.int64 = chunk * 682
#                 for row in range(T.min(682, n * 3 - first)):
#                     v_ax0: T.int64 = first + row
#                     T_tile[v_ax0] = A[v_ax0 % n]
