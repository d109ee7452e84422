# A view of a view shares the memory of the original, so both are copied before the call writes to the second one.
# test opt --passes=CopyWrittenViews

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        a = R.exp(x)
        b = R.reshape(a, R.shape([2, 2]))
        c = R.reshape(b, R.shape([4]))
        d = R.call_tir_inplace(cls.double, (c,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
        return (a, b, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.exp(x)
#         b_view: R.Tensor((2, 2), dtype="float32") = R.reshape(a, R.shape([2, 2]))
#         b: R.Tensor((2, 2), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", b_view, sinfo_args=(R.Tensor((2, 2), dtype="float32"),))
#         c_view: R.Tensor((4,), dtype="float32") = R.reshape(b, R.shape([4]))
#         c: R.Tensor((4,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", c_view, sinfo_args=(R.Tensor((4,), dtype="float32"),))
#         d: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (c,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         return (a, b, d)
