# An integer division by zero fails when it is evaluated, so the call stays and fails at run time. The float quotient is infinity.
# test opt --passes=FoldConstant
# no-run: the division fails in every run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor((), "int32"), R.Tensor(("n",), "float32")):
        with R.dataflow():
            a = R.floor_divide(R.const(1, "int32"), R.const(0, "int32"))
            b = R.divide(R.const(1.0, "float32"), R.const(0.0, "float32"))
            c = R.add(x, b)
            R.output(a, c)
        return (a, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="int32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((), dtype="int32") = R.floor_divide(R.const(1, "int32"), R.const(0, "int32"))
#             c: R.Tensor((n,), dtype="float32") = R.add(x, R.const(float("inf"), "float32"))
#             R.output(a, c)
#         return (a, c)
