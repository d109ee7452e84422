# Nothing changes if every operator knows its sizes, or needs none of its operand: the shape of `y` is unknown, but only
# `shape_of` reads it.
# test opt --passes=MatchUnknownShapes

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(ndim=1, dtype="float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Shape(ndim=1)):
        with R.dataflow():
            a = R.exp(x)
            s = R.shape_of(y)
            R.output(a, s)
        return (a, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(dtype="float32", ndim=1)) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Shape(ndim=1)):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             s: R.Shape(ndim=1) = R.shape_of(y)
#             R.output(a, s)
#         return (a, s)
