# An output of a dataflow block that nothing reads is removed from the block, together with what only it needs.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(a)
            c = R.cos(x)
            R.output(b, c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n,), dtype="float32") = R.cos(x)
#             R.output(c)
#         return c
