# An existing annotation is kept, although the function is elementwise.
# test opt --passes=AnnotateTIROpPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        T.func_attr({"op_pattern": 8})
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.exp(A[vi])

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 8})
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = T.exp(A[vi])
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return gv
