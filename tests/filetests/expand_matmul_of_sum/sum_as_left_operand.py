# Only a sum as the right operand is expanded: a sum on the left stays, and so does a difference.
# test opt --passes=ExpandMatmulOfSum

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32"), y: R.Tensor((3, 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")) -> R.Object:
        with R.dataflow():
            s = R.add(x, y)
            a = R.matmul(s, w)
            d = R.subtract(w, v)
            b = R.matmul(x, d)
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3, 4), dtype="float32"), y: R.Tensor((3, 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32"), v: R.Tensor((4, 4), dtype="float32")) -> R.Object:
#         with R.dataflow():
#             s: R.Tensor((3, 4), dtype="float32") = R.add(x, y)
#             a: R.Tensor((3, 4), dtype="float32") = R.matmul(s, w)
#             d: R.Tensor((4, 4), dtype="float32") = R.subtract(w, v)
#             b: R.Tensor((3, 4), dtype="float32") = R.matmul(x, d)
#             R.output(a, b)
#         return (a, b)
