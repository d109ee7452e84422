# The weight is overwritten after it was transposed, so the product must read the transposed copy.
# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((3, 2), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            u = R.exp(w)
            t = R.permute_dims(u, axes=[1, 0])
            c = R.call_tir_inplace(cls.double, (u,), inplace_indices=[0], out_sinfo=R.Tensor((3, 2), "float32"))
            y = R.matmul(x, t)
            R.output(c, y)
        return (c, y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((3, 2), "float32")):
#         for i, j in T.grid(3, 2):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="float32"), w: R.Tensor((3, 2), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             u: R.Tensor((3, 2), dtype="float32") = R.exp(w)
#             t: R.Tensor((2, 3), dtype="float32") = R.permute_dims(u, axes=[1, 0])
#             c: R.Tensor((3, 2), dtype="float32") = R.call_tir_inplace(cls.double, (u,), out_sinfo=R.Tensor((3, 2), dtype="float32"), inplace_indices=[0])
#             y: R.Tensor((2, 3), dtype="float32") = R.matmul(x, t)
#             R.output(c, y)
#         return (c, y)
