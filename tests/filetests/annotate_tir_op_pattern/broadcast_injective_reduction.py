# Reading at fewer indices than written is a broadcast, reading at permuted ones is injective, adding up is a reduction.
# test opt --passes=AnnotateTIROpPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def row(A: T.Buffer((4,), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj]

    @T.prim_func(private=True)
    def transpose(A: T.Buffer((4, 3), "float32"), B: T.Buffer((3, 4), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    @T.prim_func(private=True)
    def total(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
        for i, j in T.grid(4, 3):
            with T.block("b"):
                vi, vj = T.axis.remap("SR", [i, j])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vj]

    @R.function
    def main(x: R.Tensor((4, 3), "float32")) -> R.Tensor((3, 4), "float32"):
        cls = Module
        a = R.call_tir(cls.transpose, (x,), out_sinfo=R.Tensor((3, 4), "float32"))
        b = R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return R.add(a, R.call_tir(cls.row, (b,), out_sinfo=R.Tensor((3, 4), "float32")))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def row(A: T.Buffer((4,), "float32"), B: T.Buffer((3, 4), "float32")):
#         T.func_attr({"op_pattern": 1})
#         for i, j in T.grid(3, 4):
#             with T.block("b"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vj]
#
#     @T.prim_func(private=True)
#     def transpose(A: T.Buffer((4, 3), "float32"), B: T.Buffer((3, 4), "float32")):
#         T.func_attr({"op_pattern": 2})
#         for i, j in T.grid(3, 4):
#             with T.block("b"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vj, vi]
#
#     @T.prim_func(private=True)
#     def total(A: T.Buffer((4, 3), "float32"), B: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 3})
#         for i, j in T.grid(4, 3):
#             with T.block("b"):
#                 vi, vj = T.axis.remap("SR", [i, j])
#                 with T.init():
#                     B[vi] = T.float32(0.0)
#                 B[vi] = B[vi] + A[vi, vj]
#
#     @R.function
#     def main(x: R.Tensor((4, 3), dtype="float32")) -> R.Tensor((3, 4), dtype="float32"):
#         cls = Module
#         a: R.Tensor((3, 4), dtype="float32") = R.call_tir(cls.transpose, (x,), out_sinfo=R.Tensor((3, 4), dtype="float32"))
#         b: R.Tensor((4,), dtype="float32") = R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         gv: R.Tensor((3, 4), dtype="float32") = R.call_tir(cls.row, (b,), out_sinfo=R.Tensor((3, 4), dtype="float32"))
#         gv1: R.Tensor((3, 4), dtype="float32") = R.add(a, gv)
#         return gv1
