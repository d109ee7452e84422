# `x` is overwritten after it was transposed, so the concatenation must not read it later.
# test opt --passes=ReorderPermuteDimsAfterConcat

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
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            e = R.exp(x)
            a = R.permute_dims(e, axes=[1, 0])
            b = R.permute_dims(y, axes=[1, 0])
            c = R.call_tir_inplace(cls.double, (e,), inplace_indices=[0], out_sinfo=R.Tensor((2, 3), "float32"))
            d = R.concat((a, b), axis=1)
            R.output(c, d)
        return (c, d)

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
#     def main(x: R.Tensor((2, 3), dtype="float32"), y: R.Tensor((2, 3), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             e: R.Tensor((2, 3), dtype="float32") = R.exp(x)
#             a: R.Tensor((3, 2), dtype="float32") = R.permute_dims(e, axes=[1, 0])
#             b: R.Tensor((3, 2), dtype="float32") = R.permute_dims(y, axes=[1, 0])
#             c: R.Tensor((2, 3), dtype="float32") = R.call_tir_inplace(cls.double, (e,), out_sinfo=R.Tensor((2, 3), dtype="float32"), inplace_indices=[0])
#             d: R.Tensor((3, 4), dtype="float32") = R.concat((a, b), axis=1)
#             R.output(c, d)
#         return (c, d)
