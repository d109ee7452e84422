# A label repeated in one operand is a diagonal, and a label of one operand that the result lacks is a sum; neither is a matmul.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor((3, 3), "float32"), b: R.Tensor((3, 4), "float32")) -> R.Object:
        with R.dataflow():
            y = R.einsum((a, b), subscripts="ii,ij->ij")
            z = R.einsum((a, b), subscripts="ik,kj->i")
            t = R.einsum((a,), subscripts="ii->")
            R.output(y, z, t)
        return (y, z, t)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor((3, 3), dtype="float32"), b: R.Tensor((3, 4), dtype="float32")) -> R.Object:
#         with R.dataflow():
#             y: R.Tensor((3, 4), dtype="float32") = R.einsum((a, b), subscripts="ii,ij->ij")
#             z: R.Tensor((3,), dtype="float32") = R.einsum((a, b), subscripts="ik,kj->i")
#             t: R.Tensor((), dtype="float32") = R.einsum((a,), subscripts="ii->")
#             R.output(y, z, t)
#         return (y, z, t)
