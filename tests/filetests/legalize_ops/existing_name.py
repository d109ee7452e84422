# The module has a function named `exp` already, which stays as it is; the new loop function gets another name.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            with T.block("b"):
                vi = T.axis.spatial(2, i)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((2,), "float32"))
        return R.exp(a)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
#         for i in range(2):
#             with T.block("b"):
#                 vi = T.axis.spatial(2, i)
#                 B[vi] = A[vi]
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         a: R.Tensor((2,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((2,), dtype="float32"))
#         gv: R.Tensor((2,), dtype="float32") = R.call_tir(cls.exp1, (a,), out_sinfo=R.Tensor((2,), dtype="float32"))
#         return gv
#
#     @T.prim_func(private=True)
#     def exp1(A: T.Buffer((2,), "float32"), compute: T.Buffer((2,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(2):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(2, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
