# The call that overwrites `a` stays behind `r`, which reads the old value, although it could start earlier.
# test opt --passes=TopologicalSort

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
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            b = R.sin(y)
            r = R.add(a, b)
            c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
            R.output(r, c)
        return (r, c)

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
#     def main(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.exp(x)
#             b: R.Tensor((4,), dtype="float32") = R.sin(y)
#             r: R.Tensor((4,), dtype="float32") = R.add(a, b)
#             c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#             R.output(r, c)
#         return (r, c)
