# The einsum reads its operands where it stands, before the in-place call, and so does the matmul.
# test opt --passes=EinsumToMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 2), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            u = R.exp(w)
            y = R.einsum((x, u), subscripts="ik,kj->ij")
            c = R.call_tir_inplace(cls.double, (u,), inplace_indices=[0], out_sinfo=R.Tensor((2, 2), "float32"))
            z = R.exp(y)
            R.output(c, z)
        return (c, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((2, 2), "float32")):
#         for i, j in T.grid(2, 2):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="float32"), w: R.Tensor((2, 2), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             u: R.Tensor((2, 2), dtype="float32") = R.exp(w)
#             y: R.Tensor((2, 2), dtype="float32") = R.matmul(x, u)
#             c: R.Tensor((2, 2), dtype="float32") = R.call_tir_inplace(cls.double, (u,), out_sinfo=R.Tensor((2, 2), dtype="float32"), inplace_indices=[0])
#             z: R.Tensor((2, 2), dtype="float32") = R.exp(y)
#             R.output(c, z)
#         return (c, z)
