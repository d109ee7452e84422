# The match skips casts between the scores and the result, but not those of queries, keys and values.
# test opt --passes=OffloadDequantized,OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def parts(x: R.Tensor(("b", "n", 12), "float16"), mask: R.Tensor(("b", 1, 1, "n"), "float16")) -> R.Tensor(("b", "n", 4), "float16"):
        b = T.int64()
        n = T.int64()
        with R.dataflow():
            p = R.split(x, 3, axis=-1)
            q = R.permute_dims(R.reshape(p[0], (b, n, 2, 2)), [0, 2, 1, 3])
            k = R.permute_dims(R.reshape(p[1], (b, n, 2, 2)), [0, 2, 3, 1])
            v = R.permute_dims(R.reshape(p[2], (b, n, 2, 2)), [0, 2, 1, 3])
            s = R.add(R.divide(R.matmul(q, k), R.const(2.0, "float16")), mask)
            y = R.matmul(R.nn.softmax(s, axis=3), v)
            z = R.reshape(R.permute_dims(y, [0, 2, 1, 3]), (b, n, 4))
            R.output(z)
        return z

    @R.function
    def softmax_in_float32(q: R.Tensor(("b", 2, "n", 4), "bfloat16"), k: R.Tensor(("b", 2, "m", 4), "bfloat16"), seen: R.Tensor(("n", "m"), "bool")) -> R.Tensor(("b", 2, "n", 4), "bfloat16"):
        with R.dataflow():
            s = R.matmul(R.multiply(q, R.const(0.5, "bfloat16")), R.permute_dims(k, [0, 1, 3, 2]))
            hidden = R.where(seen, s, R.const(-1000.0, "bfloat16"))
            w = R.astype(R.nn.softmax(R.astype(hidden, "float32"), axis=-1), "bfloat16")
            y = R.matmul(w, k)
            R.output(y)
        return y

    @R.function
    def rounded_queries(q: R.Tensor(("b", 2, "n", 4), "float32"), k: R.Tensor(("b", 2, "m", 4), "float16")) -> R.Tensor(("b", 2, "n", 4), "float32"):
        with R.dataflow():
            s = R.matmul(R.astype(q, "float16"), R.permute_dims(k, [0, 1, 3, 2]), out_dtype="float32")
            w = R.nn.softmax(s, axis=-1)
            y = R.matmul(w, R.astype(k, "float32"))
            R.output(y)
        return y

    @R.function
    def weights_are_read(q: R.Tensor(("b", 2, "n", 4), "float16"), k: R.Tensor(("b", 2, "m", 4), "float16")) -> R.Tuple(R.Tensor(("b", 2, "n", 4), "float16"), R.Tensor(("b", 2, "n", "m"), "float16")):
        with R.dataflow():
            w = R.nn.softmax(R.matmul(q, R.permute_dims(k, [0, 1, 3, 2])), axis=-1)
            y = R.matmul(w, k)
            R.output(y, w)
        return (y, w)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def parts(x: R.Tensor(("b", "n", 12), dtype="float16"), mask: R.Tensor(("b", 1, 1, "n"), dtype="float16")) -> R.Tensor(("b", "n", 4), dtype="float16"):
#         b = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv16: R.Tensor((b, n, 12), dtype="float32") = R.astype(x, dtype="float32")
#             lv17: R.Tensor((b, 1, 1, n), dtype="float32") = R.astype(mask, dtype="float32")
#             lv18: R.Tensor((b, n, 2, 2), dtype="float32") = R.call_tir(cls.attention, (lv16, lv16, lv16, lv17), out_sinfo=R.Tensor((b, n, 2, 2), dtype="float32"))
#             lv9: R.Tensor((b, n, 2, 2), dtype="float16") = R.astype(lv18, dtype="float16")
#             z: R.Tensor((b, n, 4), dtype="float16") = R.reshape(lv9, R.shape([b, n, 4]))
#             R.output(z)
#         return z
#
#     @R.function
#     def softmax_in_float32(q: R.Tensor(("b", 2, "n", 4), dtype="bfloat16"), k: R.Tensor(("b", 2, "m", 4), dtype="bfloat16"), seen: R.Tensor(("n", "m"), dtype="bool")) -> R.Tensor(("b", 2, "n", 4), dtype="bfloat16"):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv8: R.Tensor((b, 2, m, 4), dtype="float32") = R.astype(k, dtype="float32")
#             lv10: R.Tensor((b, 2, n, 4), dtype="float32") = R.astype(q, dtype="float32")
#             lv11: R.Tensor((b, 2, m, 4), dtype="float32") = R.astype(k, dtype="float32")
#             lv9: R.Tensor((b, 2, n, 4), dtype="float32") = R.call_tir(cls.attention1, (lv10, lv11, lv8, seen), out_sinfo=R.Tensor((b, 2, n, 4), dtype="float32"))
#             y: R.Tensor((b, 2, n, 4), dtype="bfloat16") = R.astype(lv9, dtype="bfloat16")
#             R.output(y)
#         return y
#
#     @R.function
#     def rounded_queries(q: R.Tensor(("b", 2, "n", 4), dtype="float32"), k: R.Tensor(("b", 2, "m", 4), dtype="float16")) -> R.Tensor(("b", 2, "n", 4), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((b, 2, n, 4), dtype="float16") = R.astype(q, dtype="float16")
#             lv3: R.Tensor((b, 2, n, 4), dtype="float32") = R.astype(lv, dtype="float32")
#             lv2: R.Tensor((b, 2, m, 4), dtype="float32") = R.astype(k, dtype="float32")
#             lv5: R.Tensor((b, 2, m, 4), dtype="float32") = R.astype(k, dtype="float32")
#             y: R.Tensor((b, 2, n, 4), dtype="float32") = R.call_tir(cls.attention2, (lv3, lv5, lv2), out_sinfo=R.Tensor((b, 2, n, 4), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def weights_are_read(q: R.Tensor(("b", 2, "n", 4), dtype="float16"), k: R.Tensor(("b", 2, "m", 4), dtype="float16")) -> R.Tuple(R.Tensor(("b", 2, "n", 4), dtype="float16"), R.Tensor(("b", 2, "n", "m"), dtype="float16")):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, 2, 4, m), dtype="float16") = R.permute_dims(k, axes=[0, 1, 3, 2])
#             lv2: R.Tensor((b, 2, n, 4), dtype="float32") = R.astype(q, dtype="float32")
#             lv3: R.Tensor((b, 2, 4, m), dtype="float32") = R.astype(lv, dtype="float32")
#             lv4: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(lv2, lv3)
#             lv1: R.Tensor((b, 2, n, m), dtype="float16") = R.astype(lv4, dtype="float16")
#             w: R.Tensor((b, 2, n, m), dtype="float16") = R.nn.softmax(lv1)
#             lv5: R.Tensor((b, 2, n, m), dtype="float32") = R.astype(w, dtype="float32")
#             lv6: R.Tensor((b, 2, m, 4), dtype="float32") = R.astype(k, dtype="float32")
#             lv7: R.Tensor((b, 2, n, 4), dtype="float32") = R.matmul(lv5, lv6)
#             y: R.Tensor((b, 2, n, 4), dtype="float16") = R.astype(lv7, dtype="float16")
#             R.output(w, y)
#         return (y, w)
#
#     @T.prim_func(private=True)
#     def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (b, n, 12), "float32")
#         B = T.match_buffer(var_B, (b, n, 12), "float32")
#         C = T.match_buffer(var_C, (b, n, 12), "float32")
#         D = T.match_buffer(var_D, (b, 1, 1, n), "float32")
#         attention = T.match_buffer(var_attention, (b, n, 2, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [b, 2, n, 2], strides=[12 * n, 2, 12, 1]), k=T.view(B, [b, 2, n, 2], strides=[12 * n, 2, 12, 1], offset=4), v=T.view(C, [b, 2, n, 2], strides=[12 * n, 2, 12, 1], offset=8), bias=T.view(D, [b, 2, n, n], strides=[n, 0, 0, 1]), out=T.view(attention, [b, 2, n, 2], strides=[4 * n, 2, 4, 1]), scale=T.float64(0.5), fully_masked="nan"))
#
#     @T.prim_func(private=True)
#     def attention1(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (b, 2, n, 4), "float32")
#         B = T.match_buffer(var_B, (b, 2, m, 4), "float32")
#         C = T.match_buffer(var_C, (b, 2, m, 4), "float32")
#         D = T.match_buffer(var_D, (n, m), "bool")
#         attention = T.match_buffer(var_attention, (b, 2, n, 4), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=A, k=B, v=C, mask=T.view(D, [b, 2, n, m], strides=[0, 0, m, 1]), out=attention, scale=T.float64(0.5), masked_score=T.float64(-1000.0), fully_masked="nan"))
#
#     @T.prim_func(private=True)
#     def attention2(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (b, 2, n, 4), "float32")
#         B = T.match_buffer(var_B, (b, 2, m, 4), "float32")
#         C = T.match_buffer(var_C, (b, 2, m, 4), "float32")
#         attention = T.match_buffer(var_attention, (b, 2, n, 4), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=A, k=B, v=C, out=attention, scale=T.float64(1.0), fully_masked="nan"))
