# The addend `b` is broadcast, so it has another type than the sum, and its product would have another shape.
# test opt --passes=ExpandMatmulOfSum

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            s = R.add(w, b)
            y = R.matmul(x, s)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32"), b: R.Tensor((4,), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tensor((4, 4), dtype="float32") = R.add(w, b)
#             y: R.Tensor((n, 4), dtype="float32") = R.matmul(x, s)
#             R.output(y)
#         return y
