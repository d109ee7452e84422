# A named constant that a call writes to is one value, so its later reads are not replaced by the constant.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("double"):
                vi = T.axis.spatial(2, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        w = R.const([1.0, 2.0], "float32")
        before = R.add(x, w)
        _ = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((2,), "float32"))
        after = R.add(before, w)
        return after

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((2,), "float32")):
#         for i in range(2):
#             with T.block("double"):
#                 vi = T.axis.spatial(2, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         w: R.Tensor((2,), dtype="float32") = R.const([1.0, 2.0], "float32")
#         before: R.Tensor((2,), dtype="float32") = R.add(x, w)
#         _: R.Tensor((2,), dtype="float32") = R.call_tir_inplace(cls.double, (w,), out_sinfo=R.Tensor((2,), dtype="float32"), inplace_indices=[0])
#         after: R.Tensor((2,), dtype="float32") = R.add(before, w)
#         return after
