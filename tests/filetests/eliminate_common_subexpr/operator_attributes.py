# Calls with the same operands and equal attributes are merged; a different axis, data type or keepdims is another value.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.sum(x, axis=[1])
            b = R.sum(x, axis=[1])
            c = R.sum(x, axis=[0])
            d = R.sum(x, axis=[1], keepdims=True)
            e = R.astype(x, "float16")
            f = R.astype(x, "float64")
            R.output(a, b, c, d, e, f)
        return (a, b, c, d, e, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.sum(x, axis=[1])
#             c: R.Tensor((4,), dtype="float32") = R.sum(x, axis=[0])
#             d: R.Tensor((n, 1), dtype="float32") = R.sum(x, axis=[1], keepdims=True)
#             e: R.Tensor((n, 4), dtype="float16") = R.astype(x, dtype="float16")
#             f: R.Tensor((n, 4), dtype="float64") = R.astype(x, dtype="float64")
#             R.output(a, c, d, e, f)
#         return (a, a, c, d, e, f)
