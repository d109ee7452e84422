# A constant that an in-place call overwrites is not folded.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def negate(A: T.Buffer((T.int64(2),), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(2):
            with T.sblock("negate"):
                vi = T.axis.spatial(2, i)
                A[vi] = T.float32(0) - A[vi]

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        a = R.add(R.const([1.0, 2.0], "float32"), R.const(1.0, "float32"))
        b = R.add(R.const([1.0, 2.0], "float32"), R.const(2.0, "float32"))
        c = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((2,), "float32"), inplace_indices=[0])
        d = R.add(c, b)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def negate(A: T.Buffer((2,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i in range(2):
#             with T.block("negate"):
#                 vi = T.axis.spatial(2, i)
#                 A[vi] = T.float32(0.0) - A[vi]
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         a: R.Tensor((2,), dtype="float32") = R.add(R.const([1.0, 2.0], "float32"), R.const(1.0, "float32"))
#         c: R.Tensor((2,), dtype="float32") = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((2,), dtype="float32"), inplace_indices=[0])
#         d: R.Tensor((2,), dtype="float32") = R.add(c, R.const([3.0, 4.0], "float32"))
#         return d
