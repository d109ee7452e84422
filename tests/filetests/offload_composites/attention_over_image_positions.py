# Attention over the positions of an image: queries, keys and values have shape (n, channels, area), and values are multiplied by
# transposed weights.
# test opt --passes=OffloadComposites,DeadCodeElimination
@I.ir_module
class Module:
    @R.function
    def main(q: R.Tensor(("n", 8, "area"), "float32"), k: R.Tensor(("n", 8, "area"), "float32"), v: R.Tensor(("n", 32, "area"), "float32")):
        n = T.int64()
        area = T.int64()
        with R.dataflow():
            qt = R.permute_dims(q, axes=[0, 2, 1])
            s = R.matmul(qt, k)
            w = R.nn.softmax(s, axis=-1)
            wt = R.permute_dims(w, axes=[0, 2, 1])
            y = R.matmul(v, wt)
            R.output(y)
        return y

    @R.function
    def read_otherwise(q: R.Tensor(("n", 8, "area"), "float32"), k: R.Tensor(("n", 8, "area"), "float32"), v: R.Tensor(("n", 32, "area"), "float32")):
        n = T.int64()
        area = T.int64()
        with R.dataflow():
            qt = R.permute_dims(q, axes=[0, 2, 1])
            s = R.matmul(qt, k)
            w = R.nn.softmax(s, axis=-1)
            wt = R.permute_dims(w, axes=[0, 2, 1])
            y = R.matmul(v, wt)
            R.output(y, wt)
        return (y, wt)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(q: R.Tensor(("n", 8, "area"), dtype="float32"), k: R.Tensor(("n", 8, "area"), dtype="float32"), v: R.Tensor(("n", 32, "area"), dtype="float32")) -> R.Tensor(("n", 32, "area"), dtype="float32"):
#         n = T.int64()
#         area = T.int64()
#         cls = Module
#         with R.dataflow():
#             qt: R.Tensor((n, area, 8), dtype="float32") = R.permute_dims(q, axes=[0, 2, 1])
#             lv: R.Tensor((n, area, 32), dtype="float32") = R.permute_dims(v, axes=[0, 2, 1])
#             lv1: R.Tensor((n, area, 8), dtype="float32") = R.permute_dims(k, axes=[0, 2, 1])
#             lv2: R.Tensor((n, area, 32), dtype="float32") = R.call_tir(cls.attention, (qt, lv1, lv), out_sinfo=R.Tensor((n, area, 32), dtype="float32"))
#             y: R.Tensor((n, 32, area), dtype="float32") = R.permute_dims(lv2, axes=[0, 2, 1])
#             R.output(y)
#         return y
#
#     @R.function
#     def read_otherwise(q: R.Tensor(("n", 8, "area"), dtype="float32"), k: R.Tensor(("n", 8, "area"), dtype="float32"), v: R.Tensor(("n", 32, "area"), dtype="float32")) -> R.Tuple(R.Tensor(("n", 32, "area"), dtype="float32"), R.Tensor(("n", "area", "area"), dtype="float32")):
#         n = T.int64()
#         area = T.int64()
#         with R.dataflow():
#             qt: R.Tensor((n, area, 8), dtype="float32") = R.permute_dims(q, axes=[0, 2, 1])
#             s: R.Tensor((n, area, area), dtype="float32") = R.matmul(qt, k)
#             w: R.Tensor((n, area, area), dtype="float32") = R.nn.softmax(s)
#             wt: R.Tensor((n, area, area), dtype="float32") = R.permute_dims(w, axes=[0, 2, 1])
#             y: R.Tensor((n, 32, area), dtype="float32") = R.matmul(v, wt)
#             R.output(wt, y)
#         return (y, wt)
#
#     @T.prim_func(private=True)
#     def attention(var_A: T.handle, var_B: T.handle, var_C: T.handle, var_attention: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         area = T.int64()
#         A = T.match_buffer(var_A, (n, area, 8), "float32")
#         B = T.match_buffer(var_B, (n, area, 8), "float32")
#         C = T.match_buffer(var_C, (n, area, 32), "float32")
#         attention = T.match_buffer(var_attention, (n, area, 32), "float32")
#         with T.block("attention"):
#             T.evaluate(T.call_kernel("attention", q=T.view(A, [n, 1, area, 8], strides=[8 * area, 0, 8, 1]), k=T.view(B, [n, 1, area, 8], strides=[8 * area, 0, 8, 1]), v=T.view(C, [n, 1, area, 32], strides=[32 * area, 0, 32, 1]), out=T.view(attention, [n, 1, area, 32], strides=[32 * area, 0, 32, 1]), scale=T.float64(1.0), fully_masked="nan"))
