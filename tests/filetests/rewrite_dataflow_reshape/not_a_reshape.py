# A function that moves elements is no reshape, and neither is one that changes them or reads only a part.
# test opt --passes=RewriteDataflowReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def transpose(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32")):
        for i, j in T.grid(3, 2):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    @T.prim_func(private=True)
    def double(A: T.Buffer((3, 2), "float32"), B: T.Buffer((6,), "float32")):
        for i in range(6):
            with T.block("b"):
                vi = T.axis.spatial(6, i)
                B[vi] = A[vi // 2, vi % 2] * T.float32(2)

    @T.prim_func(private=True)
    def first(A: T.Buffer((6,), "float32"), B: T.Buffer((2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi * 2 + vj]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 2), "float32"):
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.transpose, (x,), out_sinfo=R.Tensor((3, 2), "float32"))
            b = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((6,), "float32"))
            c = R.call_tir(cls.first, (b,), out_sinfo=R.Tensor((2, 2), "float32"))
            d = R.exp(c)
            R.output(d)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def transpose(A: T.Buffer((2, 3), "float32"), B: T.Buffer((3, 2), "float32")):
#         for i, j in T.grid(3, 2):
#             with T.block("b"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vj, vi]
#
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((3, 2), "float32"), B: T.Buffer((6,), "float32")):
#         for i in range(6):
#             with T.block("b"):
#                 vi = T.axis.spatial(6, i)
#                 B[vi] = A[vi // 2, vi % 2] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def first(A: T.Buffer((6,), "float32"), B: T.Buffer((2, 2), "float32")):
#         for i, j in T.grid(2, 2):
#             with T.block("b"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vi * 2 + vj]
#
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 2), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((3, 2), dtype="float32") = R.call_tir(cls.transpose, (x,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
#             b: R.Tensor((6,), dtype="float32") = R.call_tir(cls.double, (a,), out_sinfo=R.Tensor((6,), dtype="float32"))
#             c: R.Tensor((2, 2), dtype="float32") = R.call_tir(cls.first, (b,), out_sinfo=R.Tensor((2, 2), dtype="float32"))
#             d: R.Tensor((2, 2), dtype="float32") = R.exp(c)
#             R.output(d)
#         return d
