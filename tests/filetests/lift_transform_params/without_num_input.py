# Without `num_input`, all parameters are inputs and nothing moves.
# test opt --passes=LiftTransformParams

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            t = R.permute_dims(w, axes=[1, 0])
            y = R.matmul(x, t)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             t: R.Tensor((4, 4), dtype="float32") = R.permute_dims(w, axes=[1, 0])
#             y: R.Tensor((n, 4), dtype="float32") = R.matmul(x, t)
#             R.output(y)
#         return y
