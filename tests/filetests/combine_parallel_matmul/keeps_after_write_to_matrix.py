# The second matrix is overwritten between the products: the second product reads other values than the first would.
# test opt --passes=CombineParallelMatmul

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
    def main(x: R.Tensor((2, 2), "float32"), q: R.Tensor((2, 2), "float32"), k: R.Tensor((2, 2), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            w = R.exp(k)
            a = R.matmul(x, q)
            z = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((2, 2), "float32"))
            b = R.matmul(x, w)
            R.output(a, z, b)
        return (a, z, b)

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
#     def main(x: R.Tensor((2, 2), dtype="float32"), q: R.Tensor((2, 2), dtype="float32"), k: R.Tensor((2, 2), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             w: R.Tensor((2, 2), dtype="float32") = R.exp(k)
#             a: R.Tensor((2, 2), dtype="float32") = R.matmul(x, q)
#             z: R.Tensor((2, 2), dtype="float32") = R.call_tir_inplace(cls.double, (w,), out_sinfo=R.Tensor((2, 2), dtype="float32"), inplace_indices=[0])
#             b: R.Tensor((2, 2), dtype="float32") = R.matmul(x, w)
#             R.output(a, z, b)
#         return (a, z, b)
