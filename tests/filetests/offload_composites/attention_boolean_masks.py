# Boolean masks of attention, which select scores with `R.where`.
# test opt --passes=OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def kept(q: R.Tensor(("n", 3, 2), "float32"), k: R.Tensor(("n", "m", 2), "float32"), seen: R.Tensor((1, 3, "m"), "bool")) -> R.Tensor(("n", 3, 2), "float32"):
        with R.dataflow():
            s = R.where(seen, R.matmul(q, R.permute_dims(k, [0, 2, 1])), R.const(float("-inf"), "float32"))
            z = R.matmul(R.nn.softmax(s, axis=-1), k)
            R.output(z)
        return z

    @R.function
    def filled(q: R.Tensor(("n", 3, 2), "float32"), k: R.Tensor(("n", "m", 2), "float32"), hidden: R.Tensor((3, "m"), "bool"), bias: R.Tensor(("m",), "float32")) -> R.Tensor(("n", 3, 2), "float32"):
        with R.dataflow():
            p = R.where(hidden, R.const(-10000.0, "float32"), R.matmul(q, R.permute_dims(k, [0, 2, 1])))
            z = R.matmul(R.nn.softmax(R.add(p, bias), axis=-1), k)
            R.output(z)
        return z

    @R.function
    def both(q: R.Tensor(("n", 3, 2), "float32"), k: R.Tensor(("n", "m", 2), "float32"), x: R.Tensor(("n", 3, "m"), "float32"), seen: R.Tensor((1, 3, "m"), "bool")) -> R.Tensor(("n", 3, 2), "float32"):
        with R.dataflow():
            s = R.where(seen, R.matmul(q, R.permute_dims(k, [0, 2, 1])), x)
            z = R.matmul(R.nn.softmax(s, axis=-1), k)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def kept(q: R.Tensor(("n", 3, 2), dtype="float32"), k: R.Tensor(("n", "m", 2), dtype="float32"), seen: R.Tensor((1, 3, "m"), dtype="bool")) -> R.Tensor(("n", 3, 2), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, 3, 2), dtype="float32") = R.call_tir(cls.attention, (q, k, k, seen), out_sinfo=R.Tensor((n, 3, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def filled(q: R.Tensor(("n", 3, 2), dtype="float32"), k: R.Tensor(("n", "m", 2), dtype="float32"), hidden: R.Tensor((3, "m"), dtype="bool"), bias: R.Tensor(("m",), dtype="float32")) -> R.Tensor(("n", 3, 2), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv4: R.Tensor((3, m), dtype="bool") = R.logical_not(hidden)
#             z: R.Tensor((n, 3, 2), dtype="float32") = R.call_tir(cls.attention1, (q, k, k, bias, lv4), out_sinfo=R.Tensor((n, 3, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def both(q: R.Tensor(("n", 3, 2), dtype="float32"), k: R.Tensor(("n", "m", 2), dtype="float32"), x: R.Tensor(("n", 3, "m"), dtype="float32"), seen: R.Tensor((1, 3, "m"), dtype="bool")) -> R.Tensor(("n", 3, 2), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2, m), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1])
#             lv1: R.Tensor((n, 3, m), dtype="float32") = R.matmul(q, lv)
#             s: R.Tensor((n, 3, m), dtype="float32") = R.where(seen, lv1, x)
#             lv2: R.Tensor((n, 3, m), dtype="float32") = R.nn.softmax(s)
#             z: R.Tensor((n, 3, 2), dtype="float32") = R.matmul(lv2, k)
#             R.output(z)
#         return z
#
#     @T.prim_func(private=True)
#     def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, 3, 2), "float32")
#         B = T.match_buffer(var_B, (n, m, 2), "float32")
#         C = T.match_buffer(var_C, (n, m, 2), "float32")
#         D = T.match_buffer(var_D, (1, 3, m), "bool")
#         attention = T.match_buffer(var_attention, (n, 3, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, 3, 2], strides=[6, 0, 2, 1]), k=T.view(B, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), v=T.view(C, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), mask=T.view(D, [n, 1, 3, m], strides=[0, 0, m, 1]), out=T.view(attention, [n, 1, 3, 2], strides=[6, 0, 2, 1]), scale=T.float64(1.0), fully_masked="nan"))
#
#     @T.prim_func(private=True)
#     def attention1(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_E: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, 3, 2), "float32")
#         B = T.match_buffer(var_B, (n, m, 2), "float32")
#         C = T.match_buffer(var_C, (n, m, 2), "float32")
#         D = T.match_buffer(var_D, (m,), "float32")
#         E = T.match_buffer(var_E, (3, m), "bool")
#         attention = T.match_buffer(var_attention, (n, 3, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, 3, 2], strides=[6, 0, 2, 1]), k=T.view(B, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), v=T.view(C, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), bias=T.view(D, [n, 1, 3, m], strides=[0, 0, 0, 1]), mask=T.view(E, [n, 1, 3, m], strides=[0, 0, m, 1]), out=T.view(attention, [n, 1, 3, 2], strides=[6, 0, 2, 1]), scale=T.float64(1.0), masked_score=T.float64(-10000.0), mask_before_bias=True, fully_masked="nan"))
