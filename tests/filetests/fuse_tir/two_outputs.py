# A group with two results becomes one loop function that writes both.
# test opt --passes=FuseTIR

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("exp"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.exp(A[vi])

    @R.function(private=True)
    def group(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(a, b)
        return (a, b)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        t = cls.group(x)
        return R.add(t[0], t[1])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def group(x: T.Buffer((4,), "float32"), a: T.Buffer((4,), "float32"), b: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i in range(4):
#             with T.block("exp"):
#                 vi = T.axis.spatial(4, i)
#                 a[vi] = T.exp(x[vi])
#         for i in range(4):
#             with T.block("exp_1"):
#                 vi = T.axis.spatial(4, i)
#                 b[vi] = T.exp(a[vi])
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = R.call_tir(cls.group, (x,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")])
#         gv: R.Tensor((4,), dtype="float32") = t[0]
#         gv1: R.Tensor((4,), dtype="float32") = t[1]
#         gv2: R.Tensor((4,), dtype="float32") = R.add(gv, gv1)
#         return gv2
