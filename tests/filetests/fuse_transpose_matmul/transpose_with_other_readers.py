# A transpose with another reader stays for it; a result that something else reads, too, is computed as it is.
# test opt --passes=FuseTransposeMatmul,DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), w: R.Tensor((4, 3), "float32")) -> R.Object:
        with R.dataflow():
            t = R.permute_dims(w, axes=[1, 0])
            y = R.matmul(x, t)
            u = R.exp(t)
            z = R.permute_dims(y, axes=[1, 0])
            R.output(y, u, z)
        return (y, u, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="float32"), w: R.Tensor((4, 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             t: R.Tensor((3, 4), dtype="float32") = R.permute_dims(w, axes=[1, 0])
#             y: R.Tensor((n, 4), dtype="float32") = R.linear(x, w)
#             u: R.Tensor((3, 4), dtype="float32") = R.exp(t)
#             z: R.Tensor((4, n), dtype="float32") = R.permute_dims(y, axes=[1, 0])
#             R.output(y, u, z)
#         return (y, u, z)
