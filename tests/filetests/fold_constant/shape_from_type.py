# The shape of a tensor is read from its type, with constant and with symbolic dims, so neither `s` nor `t` reads the tensor.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor(("n", 3), "float32")) -> R.Object:
        with R.dataflow():
            a = R.exp(x)
            s = R.shape_of(a)
            b = R.exp(y)
            t = R.shape_of(b)
            R.output(a, b, s, t)
        return (a, b, s, t)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32"), y: R.Tensor(("n", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((2, 3), dtype="float32") = R.exp(x)
#             s: R.Shape([2, 3]) = R.shape([2, 3])
#             b: R.Tensor((n, 3), dtype="float32") = R.exp(y)
#             t: R.Shape([n, 3]) = R.shape([n, 3])
#             R.output(a, s, b, t)
#         return (a, b, s, t)
