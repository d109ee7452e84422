# Variables bound to constants, shapes and scalars are replaced by their values, also across blocks.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor((2, "n"), "float32"):
        n = T.int64()
        two = R.const(2.0, "float32")
        s = R.shape([2, n])
        with R.dataflow():
            a = R.multiply(x, two)
            b = R.reshape(a, s)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor((2, "n"), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 2), dtype="float32") = R.multiply(x, R.const(2.0, "float32"))
#             b: R.Tensor((2, n), dtype="float32") = R.reshape(a, R.shape([2, n]))
#             R.output(b)
#         return b
