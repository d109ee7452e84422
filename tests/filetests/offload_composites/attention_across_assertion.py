# The pattern spans an assertion between two dataflow blocks.
# test opt --passes=OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def check(x: R.Tensor(("b", "n", 2, 4), "float32"), sound: R.Tensor((), "bool")) -> R.Tensor(("b", "n", 2, 4), "float32"):
        b = T.int64()
        n = T.int64()
        with R.dataflow():
            h = R.permute_dims(x, [0, 2, 1, 3])
            flat = R.reshape(h, (b * 2, n, 4))
            R.output(h, flat)
        _ = R.assert_op(sound, format="not sound")
        with R.dataflow():
            kt = R.reshape(R.permute_dims(flat, [0, 2, 1]), (b, 2, 4, n))
            y = R.matmul(R.nn.softmax(R.matmul(h, kt), axis=-1), h)
            z = R.permute_dims(y, [0, 2, 1, 3])
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def check(x: R.Tensor(("b", "n", 2, 4), dtype="float32"), sound: R.Tensor((), dtype="bool")) -> R.Tensor(("b", "n", 2, 4), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         cls = Module
#         _: R.Tuple = R.assert_op(sound, format="not sound")
#         with R.dataflow():
#             lv3: R.Tensor((b, n, 2, 4), dtype="float32") = R.call_tir(cls.attention, (x, x, x), out_sinfo=R.Tensor((b, n, 2, 4), dtype="float32"))
#             R.output(lv3)
#         return lv3
#
#     @T.prim_func(private=True)
#     def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         b = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (b, n, 2, 4), "float32")
#         B = T.match_buffer(var_B, (b, n, 2, 4), "float32")
#         C = T.match_buffer(var_C, (b, n, 2, 4), "float32")
#         attention = T.match_buffer(var_attention, (b, n, 2, 4), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [b, 2, n, 4], strides=[8 * n, 4, 8, 1]), k=T.view(B, [b, 2, n, 4], strides=[8 * n, 4, 8, 1]), v=T.view(C, [b, 2, n, 4], strides=[8 * n, 4, 8, 1]), out=T.view(attention, [b, 2, n, 4], strides=[8 * n, 4, 8, 1]), scale=T.float64(1.0), fully_masked="nan"))
