# A dataflow block and the plain block after it become one plain block.
# test opt --passes=ToNonDataflow

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.multiply(b, x)
            R.output(c)
        d = R.subtract(c, y)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n, 4), dtype="float32") = R.add(x, y)
#         b: R.Tensor((n, 4), dtype="float32") = R.exp(a)
#         c: R.Tensor((n, 4), dtype="float32") = R.multiply(b, x)
#         d: R.Tensor((n, 4), dtype="float32") = R.subtract(c, y)
#         return d
