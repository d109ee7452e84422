# The matrix is overwritten after its columns were gathered, so the product must not read the matrix later.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((2, 3), "float32")):
        for i, j in T.grid(2, 3):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((2, 2), "float32"), w: R.Tensor((2, 3), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            u = R.exp(w)
            t = R.take(u, R.const([2, 0], "int64"), axis=1)
            c = R.call_tir_inplace(cls.double, (u,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3), "float32"))
            y = R.matmul(x, t)
            R.output(c, y)
        return (c, y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((2, 3), "float32")):
#         for i, j in T.grid(2, 3):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[vi, vj] = A[vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((2, 2), dtype="float32"), w: R.Tensor((2, 3), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             u: R.Tensor((2, 3), dtype="float32") = R.exp(w)
#             t: R.Tensor((2, 2), dtype="float32") = R.take(u, R.const([2, 0], "int64"), axis=1)
#             c: R.Tensor((2, 3), dtype="float32") = R.call_tir_inplace(cls.double, (u,), out_sinfo=R.Tensor((2, 3), dtype="float32"), inplace_indices=[0])
#             y: R.Tensor((2, 2), dtype="float32") = R.matmul(x, t)
#             R.output(c, y)
#         return (c, y)
