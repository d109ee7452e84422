# Integers are products of matrices as well, and wrap around as before.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "int8")) -> R.Tensor(("n", 2), "int8"):
        with R.dataflow():
            y = R.einsum((x, R.const([[100, 3], [100, 5]], "int8")), subscripts="ik,kj->ij")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="int8")) -> R.Tensor(("n", 2), dtype="int8"):
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 2), dtype="int8") = R.matmul(x, R.const([[100, 3], [100, 5]], "int8"))
#             R.output(y)
#         return y
