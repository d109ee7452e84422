# Subscripts: trace, diagonal, transpose, matrix product and inner product.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 2], [3, 4]], "int32")
        x = R.where(c, a, a)
        return (R.einsum((x,), subscripts="ii->"), R.einsum((x,), subscripts="ii->i"), R.einsum((x,), subscripts="ij->ji"), R.einsum((x, x), subscripts="ij,jk->ik"), R.einsum((x, x), subscripts="ij,ij->"))

# expect
# main: (Tensor([], int32) [5.0000], Tensor([2], int32) [1.0000, 4.0000], Tensor([2, 2], int32) [1.0000, 3.0000, 2.0000, 4.0000], Tensor([2, 2], int32) [7.0000, 10.0000, 15.0000, 22.0000], Tensor([], int32) [30.0000])
