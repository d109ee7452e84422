# Two products of one region each become calls of the same packed function, with outputs of their own sizes.
# test opt --passes=FuseOpsByPattern,MergeCompositeFunctions,RunCodegen

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.exp(a)
            v = R.permute_dims(w)
            c = R.matmul(b, v)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 8), dtype="float32") = R.call_dps_packed("pliant.gemm", (x, w), out_sinfo=R.Tensor((n, 8), dtype="float32"))
#             b: R.Tensor((n, 8), dtype="float32") = R.exp(a)
#             c: R.Tensor((n, 4), dtype="float32") = R.call_dps_packed("pliant.gemm.t", (b, w), out_sinfo=R.Tensor((n, 4), dtype="float32"))
#             R.output(c)
#         return c
