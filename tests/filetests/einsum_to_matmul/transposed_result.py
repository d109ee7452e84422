# The result's labels are in the other order, so the product is transposed.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor(("i", 3), "float32"), b: R.Tensor((3, 4), "float32")) -> R.Tensor((4, "i"), "float32"):
        with R.dataflow():
            y = R.einsum((a, b), subscripts="ik,kj->ji")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor(("i", 3), dtype="float32"), b: R.Tensor((3, 4), dtype="float32")) -> R.Tensor((4, "i"), dtype="float32"):
#         i = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((i, 4), dtype="float32") = R.matmul(a, b)
#             y: R.Tensor((4, i), dtype="float32") = R.permute_dims(lv, axes=[1, 0])
#             R.output(y)
#         return y
