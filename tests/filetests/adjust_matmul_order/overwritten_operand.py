# An operand of the first product is overwritten before the second product, so the order stays.
# test opt --passes=AdjustMatmulOrder

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4, 2), "float32")):
        for i, j in T.grid(4, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((8, 4), "float32"), y: R.Tensor((4, 2), "float32"), v: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            e = R.exp(y)
            a = R.matmul(x, e)
            c = R.call_tir_inplace(cls.double, (e,), inplace_indices=[0], out_sinfo=R.Tensor((4, 2), "float32"))
            b = R.matmul(a, v)
            R.output(c, b)
        return (c, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4, 2), "float32")):
#         for i, j in T.grid(4, 2):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((8, 4), dtype="float32"), y: R.Tensor((4, 2), dtype="float32"), v: R.Tensor((2,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             e: R.Tensor((4, 2), dtype="float32") = R.exp(y)
#             a: R.Tensor((8, 2), dtype="float32") = R.matmul(x, e)
#             c: R.Tensor((4, 2), dtype="float32") = R.call_tir_inplace(cls.double, (e,), out_sinfo=R.Tensor((4, 2), dtype="float32"), inplace_indices=[0])
#             b: R.Tensor((8,), dtype="float32") = R.matmul(a, v)
#             R.output(c, b)
#         return (c, b)
