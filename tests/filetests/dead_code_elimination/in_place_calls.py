# An in-place call stays although nothing reads its result, because it changes a value that is returned.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def negate(A: T.Buffer((T.int64(4),), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            with T.sblock("negate"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(0) - A[vi]

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.exp(x)
        dead = R.exp(y)
        _ = R.call_tir_inplace(cls.negate, (y,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        return y

    @R.function(private=True)
    def helper(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        z = R.call_tir_inplace(cls.negate, (x,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        return z

    @R.function(pure=False)
    def through(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        y = R.exp(x)
        _ = cls.helper(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def negate(A: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i in range(4):
#             with T.block("negate"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = T.float32(0.0) - A[vi]
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         y: R.Tensor((4,), dtype="float32") = R.exp(x)
#         _: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.negate, (y,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         return y
#
#     @R.function(private=True)
#     def helper(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         z: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.negate, (x,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         return z
#
#     @R.function(pure=False)
#     def through(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         y: R.Tensor((4,), dtype="float32") = R.exp(x)
#         _: R.Tensor((4,), dtype="float32") = cls.helper(y)
#         return y
