# Indices from the end are allowed in `take`. An index out of range is an error, is clamped, wraps around, or gives NaN.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def rows(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 2], [3, 4], [5, 6]], "int32")
        i = R.const([2, -1, 0], "int64")
        x = R.where(c, a, a)
        j = R.where(c, i, i)
        return (R.take(x, j, axis=0), R.gather_elements(x, R.const([[0, 1], [1, -1]], "int64"), axis=1))

    @R.function
    def outside(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1, 2, 3], "int32")
        i = R.const([1, 3], "int64")
        x = R.where(c, a, a)
        j = R.where(c, i, i)
        return R.take(x, j, axis=0)

    @R.function
    def modes(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1.0, 2.0, 3.0], "float32")
        i = R.const([-4, -1, 1, 9], "int64")
        x = R.where(c, a, a)
        j = R.where(c, i, i)
        return (R.take(x, j, axis=0, mode="clip"), R.take(x, j, axis=0, mode="wrap"), R.take(x, j, axis=0, mode="nan"))

# expect
# rows: (Tensor([3, 2], int32) [5.0000, 6.0000, 5.0000, 6.0000, 1.0000, 2.0000], Tensor([2, 2], int32) [1.0000, 2.0000, 4.0000, 4.0000])
# outside: error: take: relax.take: index 3 is out of range for axis 0 of size 3
# modes: (Tensor([4], float32) [1.0000, 1.0000, 2.0000, 3.0000], Tensor([4], float32) [3.0000, 3.0000, 2.0000, 1.0000], Tensor([4], float32) [NaN, 3.0000, 2.0000, NaN])
