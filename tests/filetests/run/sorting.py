# Sorting is stable and puts NaN last; `topk` returns the largest elements first, with their indices.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([2.0, float("nan"), -1.0, 2.0, 0.0], "float32")
        x = R.where(c, a, a)
        return (R.sort(x), R.argsort(x), R.sort(x, descending=True), R.argsort(x, descending=True))

    @R.function
    def largest(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[1, 5, 3, 5], [7, 0, 2, 1]], "int32")
        x = R.where(c, a, a)
        t = R.topk(x, k=2)
        s = R.topk(x, k=2, largest=False, ret_type="indices")
        return (t, s)

# expect
# main: (Tensor([5], float32) [-1.0000, 0.0000, 2.0000, 2.0000, NaN], Tensor([5], int32) [2.0000, 4.0000, 0.0000, 3.0000, 1.0000], Tensor([5], float32) [2.0000, 2.0000, 0.0000, -1.0000, NaN], Tensor([5], int32) [0.0000, 3.0000, 4.0000, 2.0000, 1.0000])
# largest: ((Tensor([2, 2], int32) [5.0000, 5.0000, 7.0000, 2.0000], Tensor([2, 2], int32) [1.0000, 3.0000, 0.0000, 2.0000]), Tensor([2, 2], int32) [0.0000, 2.0000, 1.0000, 3.0000])
