# Einsums that stay: diagonals, sums over labels of one operand, outer and inner products, more or fewer than two operands, and
# products that loops read in place.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def diagonal(x: R.Tensor(("n", "n"), "float32"), y: R.Tensor(("n", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="ii,ij->j")
            R.output(y)
        return y

    @R.function
    def own_sum(x: R.Tensor(("b", "n", "k"), "float32"), y: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bij,jk->ik")
            R.output(y)
        return y

    @R.function
    def outer(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="i,j->ij")
            R.output(y)
        return y

    @R.function
    def inner(x: R.Tensor(("b", "n"), "float32"), y: R.Tensor(("b", "n"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bi,bi->b")
            R.output(y)
        return y

    @R.function
    def three(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("k", "l"), "float32"), z: R.Tensor(("l", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y, z), subscripts="ij,jk,kl->il")
            R.output(y)
        return y

    @R.function
    def one(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x,), subscripts="ij->ji")
            R.output(y)
        return y

    @R.function
    def stretched(x: R.Tensor(("n", 1), "float32"), y: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="ij,jk->ik")
            R.output(y)
        return y

    @R.function
    def sizes_to_check(x: R.Tensor(("n", "k"), "float32"), y: R.Tensor(("l", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="ij,jk->ik")
            R.output(y)
        return y

    @R.function
    def read_as_they_lie(x: R.Tensor(("b", "t", "d"), "float32"), w: R.Tensor(("d", 2, 3), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, w), subscripts="btd,dhk->bthk")
            R.output(y)
        return y

    @R.function
    def would_be_copied(x: R.Tensor(("b", 3, "n"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), x), subscripts="dhk,bdn->bhkn")
            R.output(y)
        return y

    @R.function
    def integers(x: R.Tensor(("b", "n", "l", "k"), "int32"), y: R.Tensor(("b", "k", "m"), "int32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((x, y), subscripts="bnlk,bkm->bnlm")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def diagonal(x: R.Tensor(("n", "n"), dtype="float32"), y: R.Tensor(("n", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((m,), dtype="float32") = R.einsum((x, y), subscripts="ii,ij->j")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def own_sum(x: R.Tensor(("b", "n", "k"), dtype="float32"), y: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.einsum((x, y), subscripts="bij,jk->ik")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def outer(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.einsum((x, y), subscripts="i,j->ij")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def inner(x: R.Tensor(("b", "n"), dtype="float32"), y: R.Tensor(("b", "n"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b,), dtype="float32") = R.einsum((x, y), subscripts="bi,bi->b")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def three(x: R.Tensor(("n", "k"), dtype="float32"), y: R.Tensor(("k", "l"), dtype="float32"), z: R.Tensor(("l", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         l = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.einsum((x, y, z), subscripts="ij,jk,kl->il")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def one(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((m, n), dtype="float32") = R.einsum((x,), subscripts="ij->ji")
#             R.output(y)
#         return y
#
#     @R.function
#     def stretched(x: R.Tensor(("n", 1), dtype="float32"), y: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.einsum((x, y), subscripts="ij,jk->ik")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def sizes_to_check(x: R.Tensor(("n", "k"), dtype="float32"), y: R.Tensor(("l", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         l = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((n, m), dtype="float32") = R.einsum((x, y), subscripts="ij,jk->ik")
#             R.output(y1)
#         return y1
#
#     @R.function
#     def read_as_they_lie(x: R.Tensor(("b", "t", "d"), dtype="float32"), w: R.Tensor(("d", 2, 3), dtype="float32")) -> R.Object:
#         b = T.int64()
#         t = T.int64()
#         d = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, t, 2, 3), dtype="float32") = R.einsum((x, w), subscripts="btd,dhk->bthk")
#             R.output(y)
#         return y
#
#     @R.function
#     def would_be_copied(x: R.Tensor(("b", 3, "n"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((b, 2, 2, n), dtype="float32") = R.einsum((R.const([[[1.0, 2.0], [3.0, -4.0]], [[0.5, 0.0], [-1.0, 1.0]], [[2.0, -2.0], [0.0, 5.0]]], "float32"), x), subscripts="dhk,bdn->bhkn")
#             R.output(y)
#         return y
#
#     @R.function
#     def integers(x: R.Tensor(("b", "n", "l", "k"), dtype="int32"), y: R.Tensor(("b", "k", "m"), dtype="int32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         l = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y1: R.Tensor((b, n, l, m), dtype="int32") = R.einsum((x, y), subscripts="bnlk,bkm->bnlm")
#             R.output(y1)
#         return y1
