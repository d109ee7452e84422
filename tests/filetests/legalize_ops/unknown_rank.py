# Operators whose operand has an unknown rank or data type stay; behind a match_cast they become loop functions.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(dtype="float32"), y: R.Tensor((2, 2))) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.exp(y)
            c = R.match_cast(x, R.Tensor((n, 2), "float32"))
            d = R.exp(c)
            R.output(a, b, d)
        return (a, b, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32"), y: R.Tensor((2, 2))) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor(dtype="float32") = R.exp(x)
#             b: R.Tensor((2, 2)) = R.exp(y)
#             c: R.Tensor((n, 2), dtype="float32") = R.match_cast(x, R.Tensor((n, 2), dtype="float32"))
#             d: R.Tensor((n, 2), dtype="float32") = R.call_tir(cls.exp, (c,), out_sinfo=R.Tensor((n, 2), dtype="float32"))
#             R.output(a, b, d)
#         return (a, b, d)
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 2), "float32")
#         compute = T.match_buffer(var_compute, (n, 2), "float32")
#         for i0, i1 in T.grid(n, 2):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
