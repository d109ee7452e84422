# Nothing is summed in an outer product, and an inner product has neither rows nor columns.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("n",), "float32"), b: R.Tensor((4,), "float32"), c: R.Tensor((4,), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((a, b), subscripts="i,j->ij")
            z = R.einsum((b, c), subscripts="i,i->")
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor(("n",), dtype="float32"), b: R.Tensor((4,), dtype="float32"), c: R.Tensor((4,), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 4), dtype="float32") = R.einsum((a, b), subscripts="i,j->ij")
#             z: R.Tensor((), dtype="float32") = R.einsum((b, c), subscripts="i,i->")
#             R.output(y, z)
#         return (y, z)
