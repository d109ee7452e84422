# Positional masks: the kernel computes them from indices and needs no mask operand.
# test opt --passes=OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def compared(q: R.Tensor(("n", "s", 2), "float32"), k: R.Tensor(("n", "p + s", 2), "float32"), keep: R.Tensor(("n", 1, "p + s"), "bool")) -> R.Tensor(("n", "s", 2), "float32"):
        n = T.int64()
        s = T.int64()
        p = T.int64()
        with R.dataflow():
            i = R.reshape(R.arange(0, s), (s, 1))
            j = R.reshape(R.arange(0, p + s), (1, p + s))
            d = R.add(R.subtract(i, j), R.shape_to_tensor(R.shape([p])))
            near = R.less(d, R.const(5, "int64"))
            seen = R.logical_and(R.logical_and(R.greater_equal(d, R.const(0, "int64")), near), keep)
            b = R.where(seen, R.const(0.0, "float32"), R.const(float("-inf"), "float32"))
            w = R.nn.softmax(R.add(R.matmul(q, R.permute_dims(k, [0, 2, 1])), b), axis=-1)
            blind = R.equal(R.max(b, axis=[-1], keepdims=True), R.const(float("-inf"), "float32"))
            z = R.matmul(R.where(blind, R.const(0.0, "float32"), w), k)
            R.output(z)
        return z

    @R.function
    def limited(q: R.Tensor(("n", "s", 2), "float32"), k: R.Tensor(("n", "m", 2), "float32")) -> R.Tensor(("n", "s", 2), "float32"):
        n = T.int64()
        s = T.int64()
        m = T.int64()
        with R.dataflow():
            t = R.tanh(R.divide(R.matmul(q, R.permute_dims(k, [0, 2, 1])), R.const(4.0, "float32")))
            hidden = R.greater(R.arange(0, m), R.reshape(R.arange(1, s + 1), (s, 1)))
            e = R.where(hidden, R.const(float("-inf"), "float32"), R.multiply(t, R.const(4.0, "float32")))
            w = R.nn.softmax(e, axis=-1)
            z = R.matmul(R.where(R.isnan(w), R.const(0.0, "float32"), w), k)
            R.output(z)
        return z

    # A constant mask of zeros and minus infinity, with constant sizes.
    @R.function
    def constant(q: R.Tensor(("n", 3, 2), "float32"), k: R.Tensor(("n", 4, 2), "float32")) -> R.Tensor(("n", 3, 2), "float32"):
        with R.dataflow():
            b = R.const([[0.0, 0.0, float("-inf"), float("-inf")], [0.0, 0.0, 0.0, float("-inf")], [0.0, 0.0, 0.0, 0.0]], "float32")
            w = R.nn.softmax(R.add(R.matmul(q, R.permute_dims(k, [0, 2, 1])), b), axis=-1)
            z = R.matmul(R.where(R.const([[False], [False], [False]], "bool"), R.const(0.0, "float32"), w), k)
            R.output(z)
        return z

    # Positions masked by a large negative number count in rows where all are masked, and so do those masked by two such numbers.
    @R.function
    def large(q: R.Tensor(("n", "s", 2), "float32"), k: R.Tensor(("n", "s", 2), "float32"), keep: R.Tensor(("n", 1, "s"), "bool")) -> R.Tensor(("n", "s", 2), "float32"):
        n = T.int64()
        s = T.int64()
        with R.dataflow():
            seen = R.greater_equal(R.reshape(R.arange(0, s), (s, 1)), R.arange(0, s))
            inner = R.where(seen, R.matmul(q, R.permute_dims(k, [0, 2, 1])), R.const(float("-inf"), "float32"))
            w = R.nn.softmax(R.where(keep, inner, R.const(-10000.0, "float32")), axis=-1)
            z = R.matmul(w, k)
            R.output(z)
        return z

    # The test for fully masked rows reads another tensor than the mask, so it is not part of the pattern.
    @R.function
    def others(q: R.Tensor(("n", "s", 2), "float32"), k: R.Tensor(("n", "s", 2), "float32"), b: R.Tensor(("s", "s"), "float32"), c: R.Tensor(("s", "s"), "float32")) -> R.Tensor(("n", "s", 2), "float32"):
        n = T.int64()
        s = T.int64()
        with R.dataflow():
            w = R.nn.softmax(R.add(R.matmul(q, R.permute_dims(k, [0, 2, 1])), b), axis=-1)
            blind = R.equal(R.max(c, axis=[-1], keepdims=True), R.const(float("-inf"), "float32"))
            z = R.matmul(R.where(blind, R.const(0.0, "float32"), w), k)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def compared(q: R.Tensor(("n", "s", 2), dtype="float32"), k: R.Tensor(("n", "p + s", 2), dtype="float32"), keep: R.Tensor(("n", 1, "p + s"), dtype="bool")) -> R.Tensor(("n", "s", 2), dtype="float32"):
#         n = T.int64()
#         s = T.int64()
#         p = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, s, 2), dtype="float32") = R.call_tir(cls.attention, (q, k, k, keep), out_sinfo=R.Tensor((n, s, 2), dtype="float32"), tir_vars=R.shape([p]))
#             R.output(z)
#         return z
#
#     @R.function
#     def limited(q: R.Tensor(("n", "s", 2), dtype="float32"), k: R.Tensor(("n", "m", 2), dtype="float32")) -> R.Tensor(("n", "s", 2), dtype="float32"):
#         n = T.int64()
#         s = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, s, 2), dtype="float32") = R.call_tir(cls.attention1, (q, k, k), out_sinfo=R.Tensor((n, s, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def constant(q: R.Tensor(("n", 3, 2), dtype="float32"), k: R.Tensor(("n", 4, 2), dtype="float32")) -> R.Tensor(("n", 3, 2), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, 3, 2), dtype="float32") = R.call_tir(cls.attention2, (q, k, k), out_sinfo=R.Tensor((n, 3, 2), dtype="float32"))
#             R.output(z)
#         return z
#
#     @R.function
#     def large(q: R.Tensor(("n", "s", 2), dtype="float32"), k: R.Tensor(("n", "s", 2), dtype="float32"), keep: R.Tensor(("n", 1, "s"), dtype="bool")) -> R.Tensor(("n", "s", 2), dtype="float32"):
#         n = T.int64()
#         s = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((s,), dtype="int64") = R.arange(R.prim_value(0), R.prim_value(s))
#             lv1: R.Tensor((s, 1), dtype="int64") = R.reshape(lv, R.shape([s, 1]))
#             lv2: R.Tensor((s,), dtype="int64") = R.arange(R.prim_value(0), R.prim_value(s))
#             seen: R.Tensor((s, s), dtype="bool") = R.greater_equal(lv1, lv2)
#             lv3: R.Tensor((n, 2, s), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1])
#             lv4: R.Tensor((n, s, s), dtype="float32") = R.matmul(q, lv3)
#             inner: R.Tensor((n, s, s), dtype="float32") = R.where(seen, lv4, R.const(float("-inf"), "float32"))
#             lv5: R.Tensor((n, s, s), dtype="float32") = R.where(keep, inner, R.const(-10000.0, "float32"))
#             w: R.Tensor((n, s, s), dtype="float32") = R.nn.softmax(lv5)
#             z: R.Tensor((n, s, 2), dtype="float32") = R.matmul(w, k)
#             R.output(z)
#         return z
#
#     @R.function
#     def others(q: R.Tensor(("n", "s", 2), dtype="float32"), k: R.Tensor(("n", "s", 2), dtype="float32"), b: R.Tensor(("s", "s"), dtype="float32"), c: R.Tensor(("s", "s"), dtype="float32")) -> R.Tensor(("n", "s", 2), dtype="float32"):
#         n = T.int64()
#         s = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 2, s), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1])
#             lv1: R.Tensor((n, s, s), dtype="float32") = R.matmul(q, lv)
#             lv2: R.Tensor((n, s, s), dtype="float32") = R.add(lv1, b)
#             w: R.Tensor((n, s, s), dtype="float32") = R.nn.softmax(lv2)
#             lv3: R.Tensor((s, 1), dtype="float32") = R.max(c, axis=[-1], keepdims=True)
#             blind: R.Tensor((s, 1), dtype="bool") = R.equal(lv3, R.const(float("-inf"), "float32"))
#             lv4: R.Tensor((n, s, s), dtype="float32") = R.where(blind, R.const(0.0, "float32"), w)
#             z: R.Tensor((n, s, 2), dtype="float32") = R.matmul(lv4, k)
#             R.output(z)
#         return z
#
#     @T.prim_func(private=True)
#     def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_D: T.handle, var_attention: T.handle, p: T.int64):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         s = T.int64()
#         A = T.match_buffer(var_A, (n, s, 2), "float32")
#         B = T.match_buffer(var_B, (n, s + p, 2), "float32")
#         C = T.match_buffer(var_C, (n, s + p, 2), "float32")
#         D = T.match_buffer(var_D, (n, 1, s + p), "bool")
#         attention = T.match_buffer(var_attention, (n, s, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, s, 2], strides=[2 * s, 0, 2, 1]), k=T.view(B, [n, 1, s + p, 2], strides=[2 * (s + p), 0, 2, 1]), v=T.view(C, [n, 1, s + p, 2], strides=[2 * (s + p), 0, 2, 1]), mask=T.view(D, [n, 1, s, s + p], strides=[s + p, 0, 0, 1]), out=T.view(attention, [n, 1, s, 2], strides=[2 * s, 0, 2, 1]), scale=T.float64(1.0), causal=True, offset=p, window=5))
#
#     @T.prim_func(private=True)
#     def attention1(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         s = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, s, 2), "float32")
#         B = T.match_buffer(var_B, (n, m, 2), "float32")
#         C = T.match_buffer(var_C, (n, m, 2), "float32")
#         attention = T.match_buffer(var_attention, (n, s, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, s, 2], strides=[2 * s, 0, 2, 1]), k=T.view(B, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), v=T.view(C, [n, 1, m, 2], strides=[2 * m, 0, 2, 1]), out=T.view(attention, [n, 1, s, 2], strides=[2 * s, 0, 2, 1]), scale=T.float64(1.0), softcap=T.float64(4.0), causal=True, offset=1, fully_masked="zeros_for_nan"))
#
#     @T.prim_func(private=True)
#     def attention2(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 3, 2), "float32")
#         B = T.match_buffer(var_B, (n, 4, 2), "float32")
#         C = T.match_buffer(var_C, (n, 4, 2), "float32")
#         attention = T.match_buffer(var_attention, (n, 3, 2), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, 3, 2], strides=[6, 0, 2, 1]), k=T.view(B, [n, 1, 4, 2], strides=[8, 0, 2, 1]), v=T.view(C, [n, 1, 4, 2], strides=[8, 0, 2, 1]), out=T.view(attention, [n, 1, 3, 2], strides=[6, 0, 2, 1]), scale=T.float64(1.0), causal=True, offset=1, fully_masked="nan"))
