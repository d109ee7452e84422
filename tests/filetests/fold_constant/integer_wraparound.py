# Folding uses the arithmetic of the program: int8 sums wrap around, and a float beyond the range of int8 saturates.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((), "int8")) -> R.Object:
        with R.dataflow():
            a = R.add(R.const(127, "int8"), R.const(1, "int8"))
            b = R.astype(R.const(300.7, "float32"), "int8")
            c = R.divide(R.const(-7, "int8"), R.const(2, "int8"))
            d = R.floor_divide(R.const(-7, "int8"), R.const(2, "int8"))
            y = R.add(x, a)
            R.output(a, b, c, d, y)
        return (a, b, c, d, y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((), dtype="int8")) -> R.Object:
#         with R.dataflow():
#             y: R.Tensor((), dtype="int8") = R.add(x, R.const(-128, "int8"))
#             R.output(y)
#         return (R.const(-128, "int8"), R.const(127, "int8"), R.const(-3, "int8"), R.const(-4, "int8"), y)
