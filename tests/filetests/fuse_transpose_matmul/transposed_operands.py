# A transposed right matrix gives a linear product, and other transposed operands give an einsum.
# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def matrix(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w))
            R.output(y)
        return y

    @R.function
    def left(x: R.Tensor(("k", "n"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(x), w)
            R.output(y)
        return y

    @R.function
    def both(x: R.Tensor(("k", "n"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(x), R.permute_dims(w))
            R.output(y)
        return y

    @R.function
    def heads(q: R.Tensor(("b", "n", 2, 3), "float32"), k: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(R.permute_dims(q, axes=[0, 2, 1, 3]), R.permute_dims(k, axes=[0, 2, 3, 1]))
            R.output(y)
        return y

    @R.function
    def result(p: R.Tensor(("b", 2, "n", "m"), "float32"), v: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            lv = R.matmul(p, R.permute_dims(v, axes=[0, 2, 1, 3]))
            y = R.permute_dims(lv, axes=[0, 2, 1, 3])
            R.output(y)
        return y

    @R.function
    def result_alone(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.matmul(x, w), axes=[1, 0])
            R.output(y)
        return y

    @R.function
    def result_by_rows(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.linear(x, w), axes=[2, 1, 0])
            R.output(y)
        return y

    @R.function
    def ranks_differ(x: R.Tensor(("c", "b", "n", "k"), "float32"), w: R.Tensor(("m", "b", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[1, 2, 0]))
            R.output(y)
        return y

    @R.function
    def vector(x: R.Tensor(("k",), "float32"), w: R.Tensor(("m", "b", "k"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[1, 2, 0]))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def matrix(x: R.Tensor(("b", "n", "k"), dtype="float32"), w: R.Tensor(("m", "k"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, n, m), dtype="float32") = R.linear(x, w)
#             R.output(y)
#         return y
#
#     @R.function
#     def left(x: R.Tensor(("k", "n"), dtype="float32"), w: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         k = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.einsum((x, w), subscripts="ca,cb->ab")
#             R.output(y)
#         return y
#
#     @R.function
#     def both(x: R.Tensor(("k", "n"), dtype="float32"), w: R.Tensor(("m", "k"), dtype="float32")) -> R.Object:
#         k = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.einsum((x, w), subscripts="ca,bc->ab")
#             R.output(y)
#         return y
#
#     @R.function
#     def heads(q: R.Tensor(("b", "n", 2, 3), dtype="float32"), k: R.Tensor(("b", "m", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, 2, n, m), dtype="float32") = R.einsum((q, k), subscripts="daec,dbec->deab")
#             R.output(y)
#         return y
#
#     @R.function
#     def result(p: R.Tensor(("b", 2, "n", "m"), dtype="float32"), v: R.Tensor(("b", "m", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, n, 2, 3), dtype="float32") = R.einsum((p, v), subscripts="deac,dceb->daeb")
#             R.output(y)
#         return y
#
#     @R.function
#     def result_alone(x: R.Tensor(("n", "k"), dtype="float32"), w: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((m, n), dtype="float32") = R.einsum((x, w), subscripts="ac,cb->ba")
#             R.output(y)
#         return y
#
#     @R.function
#     def result_by_rows(x: R.Tensor(("b", "n", "k"), dtype="float32"), w: R.Tensor(("m", "k"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((m, n, b), dtype="float32") = R.einsum((x, w), subscripts="cdb,ab->adc")
#             R.output(y)
#         return y
#
#     @R.function
#     def ranks_differ(x: R.Tensor(("c", "b", "n", "k"), dtype="float32"), w: R.Tensor(("m", "b", "k"), dtype="float32")) -> R.Object:
#         c = T.int64()
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((c, b, n, m), dtype="float32") = R.einsum((x, w), subscripts="deac,bec->deab")
#             R.output(y)
#         return y
#
#     @R.function
#     def vector(x: R.Tensor(("k",), dtype="float32"), w: R.Tensor(("m", "b", "k"), dtype="float32")) -> R.Object:
#         k = T.int64()
#         m = T.int64()
#         b = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, m), dtype="float32") = R.einsum((x, w), subscripts="c,bdc->db")
#             R.output(y)
#         return y
