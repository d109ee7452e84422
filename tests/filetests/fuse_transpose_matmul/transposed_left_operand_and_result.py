# A transposed left operand, and a transposed result that only the transpose reads, become an einsum.
# test opt --passes=FuseTransposeMatmul,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, "n"), "float32"), w: R.Tensor((4, 5), "float32")) -> R.Object:
        with R.dataflow():
            t = R.permute_dims(x, axes=[1, 0])
            y = R.matmul(t, w)
            a = R.permute_dims(w, axes=[1, 0])
            p = R.matmul(a, x)
            z = R.permute_dims(p, axes=[1, 0])
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4, "n"), dtype="float32"), w: R.Tensor((4, 5), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 5), dtype="float32") = R.einsum((x, w), subscripts="ca,cb->ab")
#             z: R.Tensor((n, 5), dtype="float32") = R.einsum((w, x), subscripts="ca,cb->ba")
#             R.output(y, z)
#         return (y, z)
