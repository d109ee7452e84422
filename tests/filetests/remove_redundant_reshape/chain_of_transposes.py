# A chain of transposes becomes one transpose of its first operand, and nothing if the axes compose to the identity.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Tensor((4, "h", "n", 2), "float32"):
        with R.dataflow():
            a = R.permute_dims(x, axes=[3, 1, 2, 0])
            b = R.permute_dims(a, axes=[2, 1, 3, 0])
            c = R.permute_dims(b, axes=[2, 1, 0, 3])
            d = R.exp(c)
            e = R.permute_dims(d)
            f = R.permute_dims(e, axes=[0, 1, -1, 2])
            R.output(f)
        return f

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Tensor((4, "h", "n", 2), dtype="float32"):
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             a: R.Tensor((4, 2, h, n), dtype="float32") = R.permute_dims(x, axes=[3, 1, 2, 0])
#             b: R.Tensor((h, 2, n, 4), dtype="float32") = R.permute_dims(x, axes=[2, 1, 0, 3])
#             d: R.Tensor((n, 2, h, 4), dtype="float32") = R.exp(x)
#             e: R.Tensor((4, h, 2, n), dtype="float32") = R.permute_dims(d)
#             f: R.Tensor((4, h, n, 2), dtype="float32") = R.permute_dims(d, axes=[3, 2, 0, 1])
#             R.output(f)
#         return f
