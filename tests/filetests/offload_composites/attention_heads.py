# Attention with heads split from one projection, with grouped heads, and with a second reader of the attention weights.
# test opt --passes=OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def parts(x: R.Tensor(("b", "n", 12), "float32"), mask: R.Tensor(("b", 1, 1, "n"), "float32")) -> R.Tensor(("b", "n", 4), "float32"):
        b = T.int64()
        n = T.int64()
        with R.dataflow():
            p = R.split(x, 3, axis=-1)
            q = R.permute_dims(R.reshape(p[0], (b, n, 2, 2)), [0, 2, 1, 3])
            k = R.permute_dims(R.reshape(p[1], (b, n, 2, 2)), [0, 2, 3, 1])
            v = R.permute_dims(R.reshape(p[2], (b, n, 2, 2)), [0, 2, 1, 3])
            s = R.add(R.divide(R.matmul(q, k), R.const(2.0, "float32")), mask)
            y = R.matmul(R.nn.softmax(s, axis=3), v)
            z = R.reshape(R.permute_dims(y, [0, 2, 1, 3]), (b, n, 4))
            R.output(z)
        return z

    @R.function
    def operator(q: R.Tensor(("b", "n", 4, 2), "float32"), k: R.Tensor(("b", "m", 2, 2), "float32"), bias: R.Tensor((4, "n", "m"), "float32")) -> R.Tensor(("b", "n", 4, 2), "float32"):
        with R.dataflow():
            z = R.nn.attention(q, k, k, bias, scale=0.5, causal_mask="BottomRight", window_size=5)
            R.output(z)
        return z

    @R.function
    def read_twice(q: R.Tensor(("n", 3, 2), "float32"), k: R.Tensor(("n", "m", 2), "float32")) -> R.Tuple(R.Tensor(("n", 3, 2), "float32"), R.Tensor(("n", 3, "m"), "float32")):
        with R.dataflow():
            w = R.nn.softmax(R.matmul(q, R.permute_dims(k, [0, 2, 1])), axis=-1)
            z = R.matmul(w, k)
            e = R.exp(w)
            R.output(z, e)
        return (z, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def parts(x: R.Tensor(("b", "n", 12), dtype="float32"), mask: R.Tensor(("b", 1, 1, "n"), dtype="float32")) -> R.Tensor(("b", "n", 4), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv10: R.Tensor((b, n, 2, 2), dtype="float32") = R.call_tir(cls.attention, (x, x, x, mask), out_sinfo=R.Tensor((b, n, 2, 2), dtype="float32"))
#             z: R.Tensor((b, n, 4), dtype="float32") = R.reshape(lv10, R.shape([b, n, 4]))
#             R.output(z)
#         return z
#
#     @R.function
#     def operator(q: R.Tensor(("b", "n", 4, 2), dtype="float32"), k: R.Tensor(("b", "m", 2, 2), dtype="float32"), bias: R.Tensor((4, "n", "m"), dtype="float32")) -> R.Tensor(("b", "n", 4, 2), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((b, n, 4, 2), dtype="float32") = R.call_tir(cls.attention1, (q, k, k, bias), out_sinfo=R.Tensor((b, n, 4, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def read_twice(q: R.Tensor(("n", 3, 2), dtype="float32"), k: R.Tensor(("n", "m", 2), dtype="float32")) -> R.Tuple(R.Tensor(("n", 3, 2), dtype="float32"), R.Tensor(("n", 3, "m"), dtype="float32")):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2, m), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1])
#             lv1: R.Tensor((n, 3, m), dtype="float32") = R.matmul(q, lv)
#             w: R.Tensor((n, 3, m), dtype="float32") = R.nn.softmax(lv1)
#             z: R.Tensor((n, 3, 2), dtype="float32") = R.matmul(w, k)
#             e: R.Tensor((n, 3, m), dtype="float32") = R.exp(w)
#             R.output(z, e)
#         return (z, e)
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
#         A = T.match_buffer(var_A, (b, n, 4, 2), "float32")
#         B = T.match_buffer(var_B, (b, m, 2, 2), "float32")
#         C = T.match_buffer(var_C, (b, m, 2, 2), "float32")
#         D = T.match_buffer(var_D, (4, n, m), "float32")
#         attention = T.match_buffer(var_attention, (b, n, 4, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [b, 4, n, 2], strides=[8 * n, 2, 8, 1]), k=T.view(B, [b, 2, m, 2], strides=[4 * m, 2, 4, 1]), v=T.view(C, [b, 2, m, 2], strides=[4 * m, 2, 4, 1]), bias=T.view(D, [b, 4, n, m], strides=[0, m * n, m, 1]), out=T.view(attention, [b, 4, n, 2], strides=[8 * n, 2, 8, 1]), scale=T.float64(0.5), causal=True, offset=m - n, window=5))
