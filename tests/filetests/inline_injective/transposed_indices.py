# The indices of the reader pass through a transpose and a flip.
# test opt --passes=LegalizeOps,AnnotateTIROpPattern,FuseOps,FuseTIR,EliminateUnused,InlineInjective

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((3, 2), "float32"):
        with R.dataflow():
            a = R.permute_dims(x, axes=[1, 0])
            b = R.flip(a, axis=0)
            c = R.negative(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((3, 2), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((3, 2), dtype="float32") = R.call_tir(cls.fused_permute_dims_flip_negative, (x,), out_sinfo=R.Tensor((3, 2), dtype="float32"))
#             R.output(c)
#         return c
#
#     @T.prim_func(private=True)
#     def fused_permute_dims_flip_negative(x: T.Buffer((2, 3), "float32"), c: T.Buffer((3, 2), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("root"):
#             for i0, i1 in T.grid(3, 2):
#                 with T.block("compute"):
#                     v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                     T.writes(c[v_i0, v_i1])
#                     c[v_i0, v_i1] = x[v_i1, 2 - v_i0] * T.float32(-1.0)
