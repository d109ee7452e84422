# An operator whose result shape depends on values is not folded, even with constant operands.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=2, dtype="int64"):
        with R.dataflow():
            a = R.nonzero(R.const([0, 1, 1], "int64"))
            R.output(a)
        return a

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=2):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor(dtype="int64", ndim=2) = R.nonzero(R.const([0, 1, 1], "int64"))
#             R.output(a)
#         return a
