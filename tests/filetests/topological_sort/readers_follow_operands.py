# After each binding come the readers that need nothing else, so `c` follows `one`; `b` waits for both of its operands.
# test opt --passes=TopologicalSort

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        with R.dataflow():
            one = R.ones(R.shape([2]), "float32")
            zero = R.zeros(R.shape([2]), "float32")
            a = R.exp(x)
            b = R.add(a, zero)
            c = R.add(x, one)
            R.output(c, b)
        return (b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")):
#         with R.dataflow():
#             one: R.Tensor((2,), dtype="float32") = R.ones(R.shape([2]))
#             c: R.Tensor((2,), dtype="float32") = R.add(x, one)
#             zero: R.Tensor((2,), dtype="float32") = R.zeros(R.shape([2]))
#             a: R.Tensor((2,), dtype="float32") = R.exp(x)
#             b: R.Tensor((2,), dtype="float32") = R.add(a, zero)
#             R.output(c, b)
#         return (b, c)
