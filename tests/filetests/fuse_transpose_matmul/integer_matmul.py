# Integers: a transposed matrix becomes a linear product, but a batch of them stays, since the einsum takes floats only.
# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "int32"), w: R.Tensor((4, 3), "int32"), v: R.Tensor((2, 4, 3), "int32")) -> R.Object:
        with R.dataflow():
            a = R.permute_dims(w, axes=[1, 0])
            y = R.matmul(x, a)
            b = R.permute_dims(v, axes=[0, 2, 1])
            z = R.matmul(x, b)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="int32"), w: R.Tensor((4, 3), dtype="int32"), v: R.Tensor((2, 4, 3), dtype="int32")) -> R.Object:
#         with R.dataflow():
#             y: R.Tensor((2, 4), dtype="int32") = R.linear(x, w)
#             b: R.Tensor((2, 3, 4), dtype="int32") = R.permute_dims(v, axes=[0, 2, 1])
#             z: R.Tensor((2, 2, 4), dtype="int32") = R.matmul(x, b)
#             R.output(y, z)
#         return (y, z)
