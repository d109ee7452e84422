# Recurrent layers become kernel calls, unless they clip or have other activations.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def plain(x: R.Tensor(("s", "n", 1), "float32"), l: R.Tensor(("n",), "int32"), h: R.Tensor((1, "n", 1), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), R.const([[1.0, -2.0]], "float32"), l, h)
            R.output(y)
        return y

    @R.function
    def limited(x: R.Tensor(("s", "n", 1), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), clip=1.0)
            R.output(y)
        return y

    @R.function
    def others(x: R.Tensor(("s", "n", 1), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), activations=["Relu"])
            R.output(y)
        return y

    @R.function
    def varying(x: R.Tensor(("s", "n", 1), "float32"), w: R.Tensor((1, 1, 1), "float32")) -> R.Object:
        with R.dataflow():
            y = R.nn.rnn(x, w, R.const([[[0.25]]], "float32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((64,), "float32", [0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
#         I.tensor((64,), "float32", [0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
#         I.tensor((64,), "float32", [0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
#             0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def plain(x: R.Tensor(("s", "n", 1), dtype="float32"), l: R.Tensor(("n",), dtype="int32"), h: R.Tensor((1, "n", 1), dtype="float32")) -> R.Object:
#         s = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="int64") = R.call_tir(cls.sequence_lengths, (l,), out_sinfo=R.Tensor((n,), dtype="int64"), tir_vars=R.shape([s]))
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_kernel("recurrent", x=x, w=metadata["relax.expr.Constant"][0], r=metadata["relax.expr.Constant"][1], bias=R.const([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "float32"), lengths=lv, initial_h=h, cell="rnn", out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
#             R.output(y)
#         return y
#
#     @R.function
#     def limited(x: R.Tensor(("s", "n", 1), dtype="float32")) -> R.Object:
#         s = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), clip=1.0)
#             R.output(y)
#         return y
#
#     @R.function
#     def others(x: R.Tensor(("s", "n", 1), dtype="float32")) -> R.Object:
#         s = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.nn.rnn(x, R.const([[[0.5]]], "float32"), R.const([[[0.25]]], "float32"), activations=["Relu"])
#             R.output(y)
#         return y
#
#     @R.function
#     def varying(x: R.Tensor(("s", "n", 1), dtype="float32"), w: R.Tensor((1, 1, 1), dtype="float32")) -> R.Object:
#         s = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((64,), dtype="float32") = R.call_tir(cls.pack_input_weights, (w,), out_sinfo=R.Tensor((64,), dtype="float32"))
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_kernel("recurrent", x=x, w=lv, r=metadata["relax.expr.Constant"][2], bias=R.const([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "float32"), cell="rnn", out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def sequence_lengths(var_A: T.handle, var_lengths: T.handle, s: T.int64):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "int32")
#         lengths = T.match_buffer(var_lengths, (n,), "int64")
#         with T.block("lengths"):
#             for n1 in range(n):
#                 length: T.int64 = T.Cast("int64", A[n1])
#                 assert T.explain(length >= 0 and length <= s, length, s), "IndexError: relax.nn.rnn: the sequence length {0} is out of range for {1} steps"
#                 lengths[n1] = length
#
#     @T.prim_func(private=True)
#     def pack_input_weights(A: T.Buffer((1, 1, 1), "float32"), packed: T.Buffer((64,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("packed"):
#             for part in T.parallel(4):
#                 d: T.int64 = part // 4
#                 q: T.int64 = part % 4
#                 count: T.int64 = T.min(T.max(1 - q * 16, 0), 16)
#                 row: T.int64 = q * 16
#                 place: T.int64 = q // 4 * 64 + q % 4 * 16 + d * 64
#                 for k in range(1):
#                     line: T.int64 = place + k * 64
#                     for u in range(count):
#                         packed[line + u] = A[d, row + u, k]
#                     for z in range(16 - count):
#                         packed[line + count + z] = T.float32(0.0)
