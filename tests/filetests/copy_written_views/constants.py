# A constant that a call writes to is copied, so that each call of the function sees the original; one that is only read is not.
# test opt --passes=CopyWrittenViews

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def add_to(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("b"):
                vi = T.axis.spatial(2, i)
                A[vi] = A[vi] + B[vi]

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        sum = R.const([1.0, 2.0], "float32")
        step = R.const([0.5, 0.25], "float32")
        a = R.add(x, step)
        b = R.call_tir_inplace(cls.add_to, (sum, a), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def add_to(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
#         for i in range(2):
#             with T.block("b"):
#                 vi = T.axis.spatial(2, i)
#                 A[vi] = A[vi] + B[vi]
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         sum_view: R.Tensor((2,), dtype="float32") = R.const([1.0, 2.0], "float32")
#         sum: R.Tensor((2,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", sum_view, sinfo_args=(R.Tensor((2,), dtype="float32"),))
#         step: R.Tensor((2,), dtype="float32") = R.const([0.5, 0.25], "float32")
#         a: R.Tensor((2,), dtype="float32") = R.add(x, step)
#         b: R.Tensor((2,), dtype="float32") = R.call_tir_inplace(cls.add_to, (sum, a), out_sinfo=R.Tensor((2,), dtype="float32"), inplace_indices=[0])
#         return b
