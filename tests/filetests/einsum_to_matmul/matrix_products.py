# Einsums that are products of matrices, with transposed operands and merged dims.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def matrices(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="ij,jk->ik")
            R.output(y)
        return y

    @R.function
    def batches(x: R.Tensor(("b", "n", "k"), "float32"), y: R.Tensor(("b", "k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bij, bjk -> bik")
            R.output(y)
        return y

    @R.function
    def one_batch_for_all(x: R.Tensor((1, "n", "k"), "float32"), y: R.Tensor(("b", "k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bij,bjk->bik")
            R.output(y)
        return y

    @R.function
    def ellipsis(x: R.Tensor(("b", "c", "n", "k"), "float32"), y: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="...ij,jk->...ik")
            R.output(y)
        return y

    @R.function
    def implicit(x: R.Tensor(("b", "n", "k"), "float32"), y: R.Tensor(("b", "k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="...ij,...jk")
            R.output(y)
        return y

    @R.function
    def vector(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("k",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="ij,j->i")
            R.output(y)
        return y

    @R.function
    def scores(q: R.Tensor(("b", "n", 2, 3), "float32"), k: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((q, k), subscripts="bqhd,bkhd->bhqk")
            R.output(y)
        return y

    @R.function
    def values(p: R.Tensor(("b", 2, "n", "m"), "float32"), v: R.Tensor(("b", "m", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((p, v), subscripts="bhqk,bkhd->bqhd")
            R.output(y)
        return y

    @R.function
    def second_first(k: R.Tensor(("b", "m", 2, 3), "float32"), q: R.Tensor(("b", "n", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((k, q), subscripts="bkhd,bqhd->bhqk")
            R.output(y)
        return y

    @R.function
    def two_columns(x: R.Tensor(("b", "t", 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32")), subscripts="btd,dhk->bthk")
            R.output(y)
        return y

    @R.function
    def two_summed(x: R.Tensor(("b", "t", 3, 2), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32")), subscripts="bthk,hkd->btd")
            R.output(y)
        return y

    @R.function
    def weights_first(x: R.Tensor(("n", 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), x), subscripts="dhk,nd->nhk")
            R.output(y)
        return y

    @R.function
    def each_its_own(x: R.Tensor((3, "n", 2), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32")), subscripts="enk,eko->eno")
            R.output(y)
        return y

    @R.function
    def summed_apart(x: R.Tensor(("k", "n", "l"), "float32"), y: R.Tensor(("l", "k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="knl,lkm->nm")
            R.output(y)
        return y

    @R.function
    def halves(x: R.Tensor(("b", "k"), "float16"), y: R.Tensor(("b", "k", "m"), "float16")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bk,bkm->bm")
            R.output(y)
        return y

    @R.function
    def columns_of_batches(x: R.Tensor(("b", "n", "l", "k"), "bfloat16"), y: R.Tensor(("b", "k", "m"), "bfloat16")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bnlk,bkm->mbnl")
            R.output(y)
        return y

    @R.function
    def heads(x: R.Tensor(("b", "t", 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32")), subscripts="btd,dhk->bhtk")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def matrices(x: R.Tensor(("n", "k"), dtype="float32"), y: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def batches(x: R.Tensor(("b", "n", "k"), dtype="float32"), y: R.Tensor(("b", "k", "m"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b, n, m), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def one_batch_for_all(x: R.Tensor((1, "n", "k"), dtype="float32"), y: R.Tensor(("b", "k", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         b = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b, n, m), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def ellipsis(x: R.Tensor(("b", "c", "n", "k"), dtype="float32"), y: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         c = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b, c, n, m), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def implicit(x: R.Tensor(("b", "n", "k"), dtype="float32"), y: R.Tensor(("b", "k", "m"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b, n, m), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def vector(x: R.Tensor(("n", "k"), dtype="float32"), y: R.Tensor(("k",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n,), dtype="float32") = R.matmul(x, y)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def scores(q: R.Tensor(("b", "n", 2, 3), dtype="float32"), k: R.Tensor(("b", "m", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, 2, n, 3), dtype="float32") = R.permute_dims(q, axes=[0, 2, 1, 3])
#             lv1: R.Tensor((b, 2, 3, m), dtype="float32") = R.permute_dims(k, axes=[0, 2, 3, 1])
#             y: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(lv, lv1)
#             R.output(y)
#         return y
#
#     @R.function
#     def values(p: R.Tensor(("b", 2, "n", "m"), dtype="float32"), v: R.Tensor(("b", "m", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, 2, m, 3), dtype="float32") = R.permute_dims(v, axes=[0, 2, 1, 3])
#             lv1: R.Tensor((b, 2, n, 3), dtype="float32") = R.matmul(p, lv)
#             y: R.Tensor((b, n, 2, 3), dtype="float32") = R.permute_dims(lv1, axes=[0, 2, 1, 3])
#             R.output(y)
#         return y
#
#     @R.function
#     def second_first(k: R.Tensor(("b", "m", 2, 3), dtype="float32"), q: R.Tensor(("b", "n", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         m = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, 2, n, 3), dtype="float32") = R.permute_dims(q, axes=[0, 2, 1, 3])
#             lv1: R.Tensor((b, 2, 3, m), dtype="float32") = R.permute_dims(k, axes=[0, 2, 3, 1])
#             y: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(lv, lv1)
#             R.output(y)
#         return y
#
#     @R.function
#     def two_columns(x: R.Tensor(("b", "t", 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         t = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((3, 4), dtype="float32") = R.reshape(R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), R.shape([3, 4]))
#             lv1: R.Tensor((b, t, 4), dtype="float32") = R.matmul(x, lv)
#             y: R.Tensor((b, t, 2, 2), dtype="float32") = R.reshape(lv1, R.shape([b, t, 2, 2]))
#             R.output(y)
#         return y
#
#     @R.function
#     def two_summed(x: R.Tensor(("b", "t", 3, 2), dtype="float32")) -> R.Object:
#         b = T.int64()
#         t = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, t, 6), dtype="float32") = R.reshape(x, R.shape([b, t, 6]))
#             lv1: R.Tensor((6, 2), dtype="float32") = R.reshape(R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), R.shape([6, 2]))
#             y: R.Tensor((b, t, 2), dtype="float32") = R.matmul(lv, lv1)
#             R.output(y)
#         return y
#
#     @R.function
#     def weights_first(x: R.Tensor(("n", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((3, 4), dtype="float32") = R.reshape(R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), R.shape([3, 4]))
#             lv1: R.Tensor((n, 4), dtype="float32") = R.matmul(x, lv)
#             y: R.Tensor((n, 2, 2), dtype="float32") = R.reshape(lv1, R.shape([n, 2, 2]))
#             R.output(y)
#         return y
#
#     @R.function
#     def each_its_own(x: R.Tensor((3, "n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((3, n, 2), dtype="float32") = R.matmul(x, R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def summed_apart(x: R.Tensor(("k", "n", "l"), dtype="float32"), y: R.Tensor(("l", "k", "m"), dtype="float32")) -> R.Object:
#         k = T.int64()
#         n = T.int64()
#         l = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, k, l), dtype="float32") = R.permute_dims(x, axes=[1, 0, 2])
#             lv1: R.Tensor((k, l, m), dtype="float32") = R.permute_dims(y, axes=[1, 0, 2])
#             lv2: R.Tensor((n, k * l), dtype="float32") = R.reshape(lv, R.shape([n, k * l]))
#             lv3: R.Tensor((k * l, m), dtype="float32") = R.reshape(lv1, R.shape([k * l, m]))
#             y1: R.Tensor((n, m), dtype="float32") = R.matmul(lv2, lv3)
#             R.output(y1)
#         return y1
#
#     @R.function
#     def halves(x: R.Tensor(("b", "k"), dtype="float16"), y: R.Tensor(("b", "k", "m"), dtype="float16")) -> R.Object:
#         b = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, 1, k), dtype="float16") = R.reshape(x, R.shape([b, 1, k]))
#             lv1: R.Tensor((b, 1, m), dtype="float16") = R.matmul(lv, y)
#             y1: R.Tensor((b, m), dtype="float16") = R.reshape(lv1, R.shape([b, m]))
#             R.output(y1)
#         return y1
#
#     @R.function
#     def columns_of_batches(x: R.Tensor(("b", "n", "l", "k"), dtype="bfloat16"), y: R.Tensor(("b", "k", "m"), dtype="bfloat16")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         l = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, l * n, k), dtype="bfloat16") = R.reshape(x, R.shape([b, l * n, k]))
#             lv1: R.Tensor((b, l * n, m), dtype="bfloat16") = R.matmul(lv, y)
#             lv2: R.Tensor((b, n, l, m), dtype="bfloat16") = R.reshape(lv1, R.shape([b, n, l, m]))
#             y1: R.Tensor((m, b, n, l), dtype="bfloat16") = R.permute_dims(lv2, axes=[3, 0, 1, 2])
#             R.output(y1)
#         return y1
#
#     @R.function
#     def heads(x: R.Tensor(("b", "t", 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         t = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((3, 4), dtype="float32") = R.reshape(R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), R.shape([3, 4]))
#             lv1: R.Tensor((b, t, 4), dtype="float32") = R.matmul(x, lv)
#             lv2: R.Tensor((b, t, 2, 2), dtype="float32") = R.reshape(lv1, R.shape([b, t, 2, 2]))
#             y: R.Tensor((b, 2, t, 2), dtype="float32") = R.permute_dims(lv2, axes=[0, 2, 1, 3])
#             R.output(y)
#         return y
