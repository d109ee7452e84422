# A chain over constants becomes one constant; the bindings that only it used are removed, and one that the function returns is
# replaced.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "int32")) -> R.Tuple(R.Tensor(("n",), "int32"), R.Tensor((), "int32")):
        with R.dataflow():
            a = R.add(R.const(2, "int32"), R.const(3, "int32"))
            b = R.multiply(a, a)
            c = R.subtract(x, b)
            R.output(b, c)
        return (c, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="int32")) -> R.Tuple(R.Tensor(("n",), dtype="int32"), R.Tensor((), dtype="int32")):
#         n = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n,), dtype="int32") = R.subtract(x, R.const(25, "int32"))
#             R.output(c)
#         return (c, R.const(25, "int32"))
