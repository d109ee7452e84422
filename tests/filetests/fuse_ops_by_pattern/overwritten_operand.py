# An in-place call overwrites the bias between the product and the sum, and another one overwrites the weight.
# test opt --passes=FuseOpsByPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((3,), "float32")):
        for i in range(3):
            with T.block("double"):
                vi = T.axis.spatial(3, i)
                A[vi] = A[vi] * T.float32(2)

    @T.prim_func(private=True)
    def double_matrix(A: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 3), "float32"), b: R.Tensor((3,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            u = R.exp(w)
            v = R.exp(b)
            y = R.matmul(x, u)
            c = R.call_tir_inplace(cls.double, (v,), inplace_indices=[0], out_sinfo=R.Tensor((3,), "float32"))
            d = R.call_tir_inplace(cls.double_matrix, (u,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3), "float32"))
            z = R.add(y, v)
            R.output(c, d, z)
        return (c, d, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((3,), "float32")):
#         for i in range(3):
#             with T.block("double"):
#                 vi = T.axis.spatial(3, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def double_matrix(A: T.Buffer((2, 3), "float32")):
#         for i, j in T.grid(2, 3):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="float32"), w: R.Tensor((2, 3), dtype="float32"), b: R.Tensor((3,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             u: R.Tensor((2, 3), dtype="float32") = R.exp(w)
#             v: R.Tensor((3,), dtype="float32") = R.exp(b)
#             y: R.Tensor((2, 3), dtype="float32") = cls.fused_relax_matmul(x, u)
#             c: R.Tensor((3,), dtype="float32") = R.call_tir_inplace(cls.double, (v,), out_sinfo=R.Tensor((3,), dtype="float32"), inplace_indices=[0])
#             d: R.Tensor((2, 3), dtype="float32") = R.call_tir_inplace(cls.double_matrix, (u,), out_sinfo=R.Tensor((2, 3), dtype="float32"), inplace_indices=[0])
#             z: R.Tensor((2, 3), dtype="float32") = R.add(y, v)
#             R.output(c, d, z)
#         return (c, d, z)
#
#     @R.function(private=True)
#     def fused_relax_matmul(x: R.Tensor((2, 2), dtype="float32"), u: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             y: R.Tensor((2, 3), dtype="float32") = R.matmul(x, u)
#             R.output(y)
#         return y
