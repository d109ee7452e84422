# Elementwise operators after a matmul run in its epilogue.
# test opt --passes=OffloadKernels,LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective,ReuseOutput,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def packed(x: R.Tensor(("n", 4), "float32"), r: R.Tensor(("n", 9), "float32")) -> R.Tensor(("n", 9), "float32"):
        with R.dataflow():
            w = R.matmul(x, R.const([[-2.0, 4.0, -1.0, 0.0, 1.0, 4.0, 0.0, 1.0, 1.0], [1.0, -3.0, 0.0, -1.0, 3.0, -2.0, 4.0, -3.0, 1.0], [0.0, 2.0, 1.0, 1.0, -1.0, 0.5, 2.0, 1.0, 0.0], [1.0, 1.0, -1.0, 2.0, 0.0, 3.0, -2.0, 1.0, 1.0]], "float32"))
            b = R.add(w, R.const([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "float32"))
            g = R.nn.gelu(b)
            z = R.add(g, r)
            R.output(z)
        return z

    @R.function
    def half(a: R.Tensor(("b", "n", 3), "float32"), c: R.Tensor(("b", 3, "m"), "float32")) -> R.Tensor(("b", "n", "m"), "float16"):
        with R.dataflow():
            p = R.matmul(a, c)
            s = R.multiply(p, R.const(0.5, "float32"))
            z = R.astype(s, "float16")
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((1, 4, 16), "float32", [[[-2.0, 4.0, -1.0, 0.0, 1.0, 4.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0], [1.0, -3.0, 0.0, -1.0, 3.0, -2.0, 4.0, -3.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0], [0.0, 2.0, 1.0, 1.0, -1.0, 0.5, 2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], [1.0, 1.0,
#             -1.0, 2.0, 0.0, 3.0, -2.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def packed(x: R.Tensor(("n", 4), dtype="float32"), r: R.Tensor(("n", 9), dtype="float32")) -> R.Tensor(("n", 9), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, 9), dtype="float32") = R.call_tir(cls.fused_matmul_packed_add_gelu_add1, (x, metadata["relax.expr.Constant"][0], R.const([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], "float32"), r), out_sinfo=R.Tensor((n, 9), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def half(a: R.Tensor(("b", "n", 3), dtype="float32"), c: R.Tensor(("b", 3, "m"), dtype="float32")) -> R.Tensor(("b", "n", "m"), dtype="float16"):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((b, n, m), dtype="float16") = R.call_tir(cls.fused_matmul_multiply_astype, (a, c), out_sinfo=R.Tensor((b, n, m), dtype="float16"))
#             R.output(z)
#         return z
#
#     @T.prim_func(private=True)
#     def fused_matmul_packed_add_gelu_add1(var_x: T.handle, const_0: T.Buffer((1, 4, 16), "float32"), const_1: T.Buffer((9,), "float32"), var_r: T.handle, var_z: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         x = T.match_buffer(var_x, (n, 4), "float32")
#         r = T.match_buffer(var_r, (n, 9), "float32")
#         z = T.match_buffer(var_z, (n, 9), "float32")
#         units: T.int64 = T.min(T.max(n * 9 * 4 // 65536, 1), 65536)
#         pieces: T.int64 = T.max(T.min(8, units // 4), 1)
#         block_rows: T.int64 = T.max(((n + (T.max((n + 131) // 132, pieces) - 1)) // T.max((n + 131) // 132, pieces) + 5) // 6, 1) * 6
#         down: T.int64 = (n + (block_rows - 1)) // block_rows
#         most_panels: T.int64 = T.min(T.max(down // pieces, 1), 4)
#         blocks_across: T.int64 = T.max((1 + (most_panels - 1)) // most_panels, 1)
#         block_panels: T.int64 = T.max((1 + (blocks_across - 1)) // blocks_across, 1)
#         across: T.int64 = (1 + (block_panels - 1)) // block_panels
#         block_units: T.int64 = T.max(units // T.max(down * across, 1), 1)
#         for turn in T.parallel(down * across * block_units):
#             if turn % block_units == 0:
#                 product: T.int64 = turn // block_units // T.max(down, 1) // T.max(across, 1)
#                 first_row: T.int64 = turn // block_units % T.max(down, 1) * block_rows
#                 first_column: T.int64 = turn // block_units // T.max(down, 1) % T.max(across, 1) * (block_panels * 16)
#                 rows: T.int64 = T.min(block_rows, n - first_row)
#                 columns: T.int64 = T.min(block_panels * 16, 9 - first_column)
#                 T.evaluate(T.call_kernel("matmul_packed", x=T.view(x, [rows, 4], strides=[1 * 4, 1], offset=first_row * 4), weight=T.view(const_0, [(columns + (16 - 1)) // 16, 4, 16], strides=[4 * 16, 16, 1], offset=first_column // 16 * (4 * 16)), out=T.view(z, [rows, columns], strides=[1 * 9, 1], offset=first_row * 9 + first_column)))
#                 for row in range(rows):
#                     v_ax0: T.int64 = first_row + row
#                     tile = T.alloc_buffer((512,), "float32", scope="local")
#                     for tile1 in range((columns + 511) // 512):
#                         for strip in range(T.min(512, columns - tile1 * 512) // 16):
#                             for lane in T.vectorized(16):
#                                 tile[0 + strip * 16 + lane] = z[v_ax0, first_column + (tile1 * 512 + (0 + strip * 16 + lane))] + const_1[first_column + (tile1 * 512 + (0 + strip * 16 + lane))]
#                         for strip in range(T.min(512, columns - tile1 * 512) % 16 // 4):
#                             for lane in T.vectorized(4):
#                                 tile[0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane] = z[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane))] + const_1[first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane))]
#                         for tail in range(T.min(512, columns - tile1 * 512) % 16 % 4 // 1):
#                             tile[0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1] = z[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1))] + const_1[first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1))]
#                         T.evaluate(T.call_extern("int64", "pliant_vec_gelu_f32", T.address_of(tile[0]), T.address_of(tile[0]), T.min(512, columns - tile1 * 512)))
#                         for strip in range(T.min(512, columns - tile1 * 512) // 16):
#                             for lane in T.vectorized(16):
#                                 z[v_ax0, first_column + (tile1 * 512 + (0 + strip * 16 + lane))] = tile[0 + strip * 16 + lane] + r[v_ax0, first_column + (tile1 * 512 + (0 + strip * 16 + lane))]
#                         for strip in range(T.min(512, columns - tile1 * 512) % 16 // 4):
#                             for lane in T.vectorized(4):
#                                 z[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane))] = tile[0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane] + r[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + strip * 4 + lane))]
#                         for tail in range(T.min(512, columns - tile1 * 512) % 16 % 4 // 1):
#                             z[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1))] = tile[0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1] + r[v_ax0, first_column + (tile1 * 512 + (0 + T.min(512, columns - tile1 * 512) // 16 * 16 + T.min(512, columns - tile1 * 512) % 16 // 4 * 4 + tail * 1))]
#
#     @T.prim_func(private=True)
#     def fused_matmul_multiply_astype(var_a: T.handle, var_c: T.handle, var_z: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         a = T.match_buffer(var_a, (b, n, 3), "float32")
#         c = T.match_buffer(var_c, (b, 3, m), "float32")
#         z = T.match_buffer(var_z, (b, n, m), "float16")
#         units: T.int64 = T.min(T.max(n * m * 3 // 65536, 1), 65536)
#         pieces: T.int64 = T.max(T.min((8 + (T.max(b, 1) - 1)) // T.max(b, 1), units // 4), 1)
#         block_rows: T.int64 = T.max(((n + (T.max((n + 191) // 192, (pieces + (T.max((m + 63) // 64, 1) - 1)) // T.max((m + 63) // 64, 1)) - 1)) // T.max((n + 191) // 192, (pieces + (T.max((m + 63) // 64, 1) - 1)) // T.max((m + 63) // 64, 1)) + 5) // 6, 1) * 6
#         down: T.int64 = (n + (block_rows - 1)) // block_rows
#         most_panels: T.int64 = T.min(T.max((m + 63) // 64 * down // pieces, 1), 4)
#         blocks_across: T.int64 = T.max(((m + 63) // 64 + (most_panels - 1)) // most_panels, 1)
#         block_panels: T.int64 = T.max(((m + 63) // 64 + (blocks_across - 1)) // blocks_across, 1)
#         across: T.int64 = ((m + 63) // 64 + (block_panels - 1)) // block_panels
#         block_units: T.int64 = T.max(units // T.max(down * across, 1), 1)
#         together: T.int64 = T.max(T.min(65536 // T.max(n * m * 3, 1), 192 // T.max(n, 1)) * T.min(256 // T.max(m, 1), 1), 1)
#         for turn in T.parallel((b + (together - 1)) // together * down * across * block_units):
#             if turn % block_units == 0:
#                 product: T.int64 = turn // block_units // T.max(down, 1) // T.max(across, 1) * together
#                 products: T.int64 = T.min(together, b - product)
#                 first_row: T.int64 = turn // block_units % T.max(down, 1) * block_rows
#                 first_column: T.int64 = turn // block_units // T.max(down, 1) % T.max(across, 1) * (block_panels * 64)
#                 rows: T.int64 = T.min(block_rows, n - first_row)
#                 columns: T.int64 = T.min(block_panels * 64, m - first_column)
#                 tile = T.alloc_buffer((192, 256), "float32")
#                 T.evaluate(T.call_kernel("matmul", x=T.view(a, [products, rows, 3], strides=[1 * n * 3, 1 * 3, 1], offset=(product * n + first_row) * 3), weight=T.view(c, [products, 3, columns], strides=[1 * 3 * m, 1 * m, 1], offset=product * 3 * m + first_column), out=T.view(tile, [products, rows, columns], strides=[rows * 256, 256, 1])))
#                 for within, row in T.grid(products, rows):
#                     v_i: T.int64 = first_row + row
#                     v_b0: T.int64 = product + within
#                     tile1 = T.alloc_buffer((512,), "float32", scope="local")
#                     for tile2 in range((columns + 511) // 512):
#                         for strip in range(T.min(512, columns - tile2 * 512) // 16):
#                             for lane in T.vectorized(16):
#                                 tile1[0 + strip * 16 + lane] = tile[within * rows + row, tile2 * 512 + (0 + strip * 16 + lane)] * T.float32(0.5)
#                         for strip in range(T.min(512, columns - tile2 * 512) % 16 // 4):
#                             for lane in T.vectorized(4):
#                                 tile1[0 + T.min(512, columns - tile2 * 512) // 16 * 16 + strip * 4 + lane] = tile[within * rows + row, tile2 * 512 + (0 + T.min(512, columns - tile2 * 512) // 16 * 16 + strip * 4 + lane)] * T.float32(0.5)
#                         for tail in range(T.min(512, columns - tile2 * 512) % 16 % 4 // 1):
#                             tile1[0 + T.min(512, columns - tile2 * 512) // 16 * 16 + T.min(512, columns - tile2 * 512) % 16 // 4 * 4 + tail * 1] = tile[within * rows + row, tile2 * 512 + (0 + T.min(512, columns - tile2 * 512) // 16 * 16 + T.min(512, columns - tile2 * 512) % 16 // 4 * 4 + tail * 1)] * T.float32(0.5)
#                         T.evaluate(T.call_extern("int64", "pliant_vec_f32_to_f16", T.address_of(z[v_b0, v_i, first_column + tile2 * 512]), T.address_of(tile1[0]), T.min(512, columns - tile2 * 512)))
