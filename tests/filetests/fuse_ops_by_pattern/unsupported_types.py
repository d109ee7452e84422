# The backend multiplies floats of 32 and 64 bits; integers and 16-bit floats match no pattern.
# test opt --passes=FuseOpsByPattern

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 4), "int32"), y: R.Tensor((2, 4), "float16"), z: R.Tensor((2, 4), "float64"), w: R.Tensor((4, 3), "int32"), v: R.Tensor((4, 3), "float16"), u: R.Tensor((4, 3), "float64")):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.matmul(y, v)
            c = R.matmul(z, u)
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 4), dtype="int32"), y: R.Tensor((2, 4), dtype="float16"), z: R.Tensor((2, 4), dtype="float64"), w: R.Tensor((4, 3), dtype="int32"), v: R.Tensor((4, 3), dtype="float16"), u: R.Tensor((4, 3), dtype="float64")) -> R.Tuple(R.Tensor((2, 3), dtype="int32"), R.Tensor((2, 3), dtype="float16"), R.Tensor((2, 3), dtype="float64")):
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((2, 3), dtype="int32") = R.matmul(x, w)
#             b: R.Tensor((2, 3), dtype="float16") = R.matmul(y, v)
#             c: R.Tensor((2, 3), dtype="float64") = cls.fused_relax_matmul(z, u)
#             R.output(a, b, c)
#         return (a, b, c)
#
#     @R.function(private=True)
#     def fused_relax_matmul(z: R.Tensor((2, 4), dtype="float64"), u: R.Tensor((4, 3), dtype="float64")) -> R.Tensor((2, 3), dtype="float64"):
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             c: R.Tensor((2, 3), dtype="float64") = R.matmul(z, u)
#             R.output(c)
#         return c
