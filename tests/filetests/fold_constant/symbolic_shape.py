# A filled tensor of symbolic size has no value at compile time; a sum over an empty constant does.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.ones(R.shape([n]), "float32")
            b = R.sum(R.zeros(R.shape([0, 2]), "float32"), axis=[0])
            c = R.prod(R.zeros(R.shape([0, 2]), "float32"), axis=[0])
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.ones(R.shape([n]))
#             R.output(a)
#         return (a, R.const([0.0, 0.0], "float32"), R.const([1.0, 1.0], "float32"))
