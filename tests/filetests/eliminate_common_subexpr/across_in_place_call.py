# No value is merged across an in-place call: `e` reads the overwritten `a`, and `f` stays, too, since the call may write to any
# tensor.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(a)
            c = R.cos(x)
            d = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
            e = R.sin(a)
            f = R.cos(x)
            R.output(b, c, d, e, f)
        return (b, c, d, e, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("double"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.exp(x)
#             b: R.Tensor((4,), dtype="float32") = R.sin(a)
#             c: R.Tensor((4,), dtype="float32") = R.cos(x)
#             d: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#             e: R.Tensor((4,), dtype="float32") = R.sin(a)
#             f: R.Tensor((4,), dtype="float32") = R.cos(x)
#             R.output(b, c, d, e, f)
#         return (b, c, d, e, f)
