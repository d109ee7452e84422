# Small filled tensors become constants, large ones stay calls: a constant of 100,000 zeros would only grow the program.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            a = R.zeros(R.shape([2]), "float32")
            b = R.zeros(R.shape([100000]), "float32")
            c = R.sum(b)
            R.output(a, c)
        return (a, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             b: R.Tensor((100000,), dtype="float32") = R.zeros(R.shape([100000]))
#             c: R.Tensor((), dtype="float32") = R.sum(b)
#             R.output(c)
#         return (R.const([0.0, 0.0], "float32"), c)
