# Constants are equal by value: 0.0 and -0.0 differ, and so do values of different data types.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        with R.dataflow():
            a = R.divide(x, R.const(2.0, "float32"))
            b = R.divide(x, R.const(2.0, "float32"))
            c = R.divide(x, R.const(0.0, "float32"))
            d = R.divide(x, R.const(-0.0, "float32"))
            e = R.full_like(x, R.const(1, "int32"), dtype="int32")
            f = R.full_like(x, R.const(1, "int64"), dtype="int64")
            R.output(a, b, c, d, e, f)
        return (a, b, c, d, e, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.divide(x, R.const(2.0, "float32"))
#             c: R.Tensor((n,), dtype="float32") = R.divide(x, R.const(0.0, "float32"))
#             d: R.Tensor((n,), dtype="float32") = R.divide(x, R.const(-0.0, "float32"))
#             e: R.Tensor((n,), dtype="int32") = R.full_like(x, R.const(1, "int32"), dtype="int32")
#             f: R.Tensor((n,), dtype="int64") = R.full_like(x, R.const(1, "int64"), dtype="int64")
#             R.output(a, c, d, e, f)
#         return (a, a, c, d, e, f)
