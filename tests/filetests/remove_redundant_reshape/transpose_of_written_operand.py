# Transposes are not merged in a module with calls that write to their operands.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4, 2), "float32")):
        for i, j in T.grid(4, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4, 2), "float32")) -> R.Tuple(R.Tensor((4, 2), "float32"), R.Tensor((4, 2), "float32")):
        cls = Module
        a = R.exp(x)
        b = R.permute_dims(a)
        c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4, 2), "float32"))
        d = R.permute_dims(b)
        return (c, d)

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
#     @R.function(pure=False)
#     def main(x: R.Tensor((4, 2), dtype="float32")) -> R.Tuple(R.Tensor((4, 2), dtype="float32"), R.Tensor((4, 2), dtype="float32")):
#         cls = Module
#         a: R.Tensor((4, 2), dtype="float32") = R.exp(x)
#         b: R.Tensor((2, 4), dtype="float32") = R.permute_dims(a)
#         c: R.Tensor((4, 2), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4, 2), dtype="float32"), inplace_indices=[0])
#         d: R.Tensor((4, 2), dtype="float32") = R.permute_dims(b)
#         return (c, d)
