# A variable that names a constant is replaced by it, also if nothing else is folded, so that offload rules see a constant operand.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            w = R.const([[1.0, 2.0], [3.0, 4.0]], "float32")
            y = R.matmul(x, w)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(x, R.const([[1.0, 2.0], [3.0, 4.0]], "float32"))
#             R.output(y)
#         return y
