# Numbers that are no plain decimals: NaN, infinities, negative zero, the largest and smallest of their types.
# test print

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Object:
        a = R.const([float("nan"), float("inf"), float("-inf"), -0.0], "float32")
        b = R.const([3.4028234663852886e38, 1e-45, 0.1], "float32")
        c = R.const([-9223372036854775808, 9223372036854775807], "int64")
        d = R.const([18446744073709551615], "uint64")
        e = R.const([True, False], "bool")
        f = R.const([65504.0, 6e-8], "float16")
        return (a, b, c, d, e, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Object:
#         a: R.Tensor((4,), dtype="float32") = R.const([float("nan"), float("inf"), float("-inf"), -0.0], "float32")
#         b: R.Tensor((3,), dtype="float32") = R.const([3.4028235e38, 1e-45, 0.1], "float32")
#         c: R.Tensor((2,), dtype="int64") = R.const([-9223372036854775808, 9223372036854775807], "int64")
#         d: R.Tensor((1,), dtype="uint64") = R.const([18446744073709551615], "uint64")
#         e: R.Tensor((2,), dtype="bool") = R.const([True, False], "bool")
#         f: R.Tensor((2,), dtype="float16") = R.const([65504.0, 5.9604645e-8], "float16")
#         return (a, b, c, d, e, f)
