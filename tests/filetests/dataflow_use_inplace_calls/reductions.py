# A running sum reads elements that the same loop has written, and a softmax reads a row more than once: neither overwrites its
# operand.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((3, 4), "float32")) -> R.Tensor((3, 4), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.cumsum(a, axis=1)
            c = R.nn.softmax(b)
            d = R.flip(c, axis=0)
            R.output(d)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((3, 4), dtype="float32")) -> R.Tensor((3, 4), dtype="float32"):
#         with R.dataflow():
#             a: R.Tensor((3, 4), dtype="float32") = R.exp(x)
#             b: R.Tensor((3, 4), dtype="float32") = R.cumsum(a, axis=1)
#             c: R.Tensor((3, 4), dtype="float32") = R.nn.softmax(b)
#             d: R.Tensor((3, 4), dtype="float32") = R.flip(c, axis=0)
#             R.output(d)
#         return d
