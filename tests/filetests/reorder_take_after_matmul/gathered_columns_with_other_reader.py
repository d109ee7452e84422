# The gathered columns have another reader and stay for it.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 5), "float32"), i: R.Tensor((3,), "int64")) -> R.Object:
        with R.dataflow():
            c = R.take(w, i, axis=1)
            y = R.matmul(x, c)
            z = R.exp(c)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 5), dtype="float32"), i: R.Tensor((3,), dtype="int64")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             c: R.Tensor((4, 3), dtype="float32") = R.take(w, i, axis=1)
#             lv: R.Tensor((n, 5), dtype="float32") = R.matmul(x, w)
#             y: R.Tensor((n, 3), dtype="float32") = R.take(lv, i, axis=-1)
#             z: R.Tensor((4, 3), dtype="float32") = R.exp(c)
#             R.output(y, z)
#         return (y, z)
