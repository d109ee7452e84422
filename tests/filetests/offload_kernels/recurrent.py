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
#         I.tensor((64,), "float32", "AAAAPwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="),
#         I.tensor((64,), "float32", "AACAPgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="),
#         I.tensor((64,), "float32", "AACAPgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="),
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
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_tir(cls.rnn_packed, (x, metadata["relax.expr.Constant"][0], metadata["relax.expr.Constant"][1], R.const([-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "float32"), l, h), out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
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
#             y: R.Tuple(R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")) = R.call_tir(cls.rnn_packed1, (x, w, metadata["relax.expr.Constant"][2], R.const([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "float32")), out_sinfo=[R.Tensor((s, 1, n, 1), dtype="float32"), R.Tensor((1, n, 1), dtype="float32")])
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def rnn_packed(var_A: T.handle, B: T.Buffer((64,), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((16,), "float32"), var_E: T.handle, var_F: T.handle, var_rnn_packed_0: T.handle, var_rnn_packed_1: T.handle):
#         T.func_attr({"tir.noalias": True})
#         s = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (s, n, 1), "float32")
#         E = T.match_buffer(var_E, (n,), "int32")
#         F = T.match_buffer(var_F, (1, n, 1), "float32")
#         rnn_packed_0 = T.match_buffer(var_rnn_packed_0, (s, 1, n, 1), "float32")
#         rnn_packed_1 = T.match_buffer(var_rnn_packed_1, (1, n, 1), "float32")
#         with T.block("rnn_packed"):
#             lengths = T.decl_buffer((n,), "int64")
#             for n1 in range(n):
#                 length: T.int64 = T.Cast("int64", E[n1])
#                 assert T.explain(length >= 0 and length <= s, length, s), "IndexError: relax.nn.rnn: the sequence length {0} is out of range for {1} steps"
#                 lengths[n1] = length
#             T.evaluate(T.call_kernel("recurrent", x=A, w=B, r=C, bias=D, lengths=lengths, initial_h=F, y=rnn_packed_0, last_h=rnn_packed_1, cell="rnn"))
#
#     @T.prim_func(private=True)
#     def rnn_packed1(var_A: T.handle, B: T.Buffer((1, 1, 1), "float32"), C: T.Buffer((64,), "float32"), D: T.Buffer((16,), "float32"), var_rnn_packed_0: T.handle, var_rnn_packed_1: T.handle):
#         T.func_attr({"tir.noalias": True})
#         s = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (s, n, 1), "float32")
#         rnn_packed_0 = T.match_buffer(var_rnn_packed_0, (s, 1, n, 1), "float32")
#         rnn_packed_1 = T.match_buffer(var_rnn_packed_1, (1, n, 1), "float32")
#         with T.block("rnn_packed"):
#             input_panels = T.decl_buffer((64,), "float32", scope="local")
#             for part in T.parallel(4):
#                 d: T.int64 = part // 4
#                 q: T.int64 = part % 4
#                 count: T.int64 = T.min(T.max(1 - q * 16, 0), 16)
#                 row: T.int64 = q * 16
#                 place: T.int64 = q // 4 * 64 + q % 4 * 16 + d * 64
#                 for k in range(1):
#                     line: T.int64 = place + k * 64
#                     for u in range(count):
#                         input_panels[line + u] = B[d, row + u, k]
#                     for z in range(16 - count):
#                         input_panels[line + count + z] = T.float32(0.0)
#             T.evaluate(T.call_kernel("recurrent", x=A, w=input_panels, r=C, bias=D, y=rnn_packed_0, last_h=rnn_packed_1, cell="rnn"))
