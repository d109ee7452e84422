# A function without blocks is opaque, and so is one that calls a packed function.
# test opt --passes=AnnotateTIROpPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def plain(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            B[i] = A[i]

    @T.prim_func(private=True)
    def calls(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.call_packed("test.square", A[vi], dtype="int64")

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "int64")) -> R.Object:
        cls = Module
        a = R.call_tir(cls.plain, (x,), out_sinfo=R.Tensor((4,), "float32"))
        b = R.call_tir(cls.calls, (y,), out_sinfo=R.Tensor((4,), "int64"))
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def plain(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 8})
#         for i in range(4):
#             B[i] = A[i]
#
#     @T.prim_func(private=True)
#     def calls(A: T.Buffer((4,), "int64"), B: T.Buffer((4,), "int64")):
#         T.func_attr({"op_pattern": 8})
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = T.call_packed("test.square", A[vi])
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="int64")) -> R.Object:
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.call_tir(cls.plain, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         b: R.Tensor((4,), dtype="int64") = R.call_tir(cls.calls, (y,), out_sinfo=R.Tensor((4,), dtype="int64"))
#         return (a, b)
