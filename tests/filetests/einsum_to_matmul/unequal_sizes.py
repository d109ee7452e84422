# The summed sizes `k` and `m` are not known to be equal, so the einsum stays and checks them.
# test opt --passes=EinsumToMatmul
# no-run: the sizes differ in every run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("n", "k"), "float32"), b: R.Tensor(("m", 5), "float32")) -> R.Tensor(("n", 5), "float32"):
        with R.dataflow():
            y = R.einsum((a, b), subscripts="ik,kj->ij")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor(("n", "k"), dtype="float32"), b: R.Tensor(("m", 5), dtype="float32")) -> R.Tensor(("n", 5), dtype="float32"):
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 5), dtype="float32") = R.einsum((a, b), subscripts="ik,kj->ij")
#             R.output(y)
#         return y
