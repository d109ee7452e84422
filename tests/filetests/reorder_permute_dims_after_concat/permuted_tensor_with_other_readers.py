# A permuted tensor that is read elsewhere is still computed; a negative axis counts from the end.
# test opt --passes=ReorderPermuteDimsAfterConcat

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.permute_dims(x, axes=[1, 0])
            b = R.permute_dims(y, axes=[-1, 0])
            c = R.concat((a, b), axis=-2)
            d = R.exp(a)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((3, n), dtype="float32") = R.permute_dims(x, axes=[1, 0])
#             lv: R.Tensor((n, 7), dtype="float32") = R.concat((x, y), axis=1)
#             c: R.Tensor((7, n), dtype="float32") = R.permute_dims(lv, axes=[1, 0])
#             d: R.Tensor((3, n), dtype="float32") = R.exp(a)
#             R.output(c, d)
#         return (c, d)
