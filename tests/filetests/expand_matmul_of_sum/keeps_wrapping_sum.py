# The 8-bit sum wraps around before it is widened, so a product with a wider result type must not be expanded.
# test opt --passes=ExpandMatmulOfSum

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2), "int8"), w: R.Tensor((2, 2), "int8")) -> R.Tensor((2, 2), "int32"):
        with R.dataflow():
            a = R.multiply(w, R.const(40, "int8"))
            s = R.add(a, R.const([[100, 100], [100, 100]], "int8"))
            y = R.matmul(x, s, out_dtype="int32")
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="int8"), w: R.Tensor((2, 2), dtype="int8")) -> R.Tensor((2, 2), dtype="int32"):
#         with R.dataflow():
#             a: R.Tensor((2, 2), dtype="int8") = R.multiply(w, R.const(40, "int8"))
#             s: R.Tensor((2, 2), dtype="int8") = R.add(a, R.const([[100, 100], [100, 100]], "int8"))
#             y: R.Tensor((2, 2), dtype="int32") = R.matmul(x, s, out_dtype="int32")
#             R.output(y)
#         return y
