# Regions of the backend `gemm` become destination-passing calls of its packed functions.
# test opt --passes=FuseOpsByPattern,MergeCompositeFunctions,RunCodegen,LegalizeOps
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32"), v: R.Tensor((3, 8), "float32")):
        n = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(b, lv)
            lv2 = R.nn.gelu(lv1)
            t = R.permute_dims(v)
            lv3 = R.matmul(lv2, t)
            lv4 = R.exp(lv3)
            R.output(lv4)
        return lv4

    @R.function
    def batched(x: R.Tensor(("b", "n", 4), "float64"), w: R.Tensor(("b", 6, 4), "float64"), c: R.Tensor((6,), "float64")):
        b = T.int64()
        n = T.int64()
        with R.dataflow():
            t = R.permute_dims(w, axes=[0, 2, 1])
            lv = R.matmul(x, t)
            lv1 = R.add(lv, c)
            lv2 = R.nn.silu(lv1)
            R.output(lv2)
        return lv2

    @R.function
    def square(x: R.Tensor(("n", "n"), "float32")):
        n = T.int64()
        lv = R.matmul(x, x)
        lv1 = R.tanh(lv)
        return lv1

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32"), v: R.Tensor((3, 8), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv2: R.Tensor((n, 8), dtype="float32") = R.call_dps_packed("pliant.gemm.bias.gelu", (x, w, b), out_sinfo=R.Tensor((n, 8), dtype="float32"))
#             lv3: R.Tensor((n, 3), dtype="float32") = R.call_dps_packed("pliant.gemm.t", (lv2, v), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             lv4: R.Tensor((n, 3), dtype="float32") = R.call_tir(cls.exp, (lv3,), out_sinfo=R.Tensor((n, 3), dtype="float32"))
#             R.output(lv4)
#         return lv4
#
#     @R.function
#     def batched(x: R.Tensor(("b", "n", 4), dtype="float64"), w: R.Tensor(("b", 6, 4), dtype="float64"), c: R.Tensor((6,), dtype="float64")) -> R.Tensor(("b", "n", 6), dtype="float64"):
#         b = T.int64()
#         n = T.int64()
#         with R.dataflow():
#             lv2: R.Tensor((b, n, 6), dtype="float64") = R.call_dps_packed("pliant.gemm.t.bias.silu", (x, w, c), out_sinfo=R.Tensor((b, n, 6), dtype="float64"))
#             R.output(lv2)
#         return lv2
#
#     @R.function
#     def square(x: R.Tensor(("n", "n"), dtype="float32")) -> R.Tensor(("n", "n"), dtype="float32"):
#         n = T.int64()
#         lv1: R.Tensor((n, n), dtype="float32") = R.call_dps_packed("pliant.gemm.tanh", (x, x), out_sinfo=R.Tensor((n, n), dtype="float32"))
#         return lv1
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 3), "float32")
#         compute = T.match_buffer(var_compute, (n, 3), "float32")
#         for i0, i1 in T.grid(n, 3):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
