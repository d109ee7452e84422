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
