# A reshape is a new value. If a call writes to its operand later, the reshape of the reshape still reads the copy.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        a = R.exp(x)
        b = R.reshape(a, R.shape([2, 2]))
        c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
        d = R.reshape(b, R.shape([4]))
        return (c, d)

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
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.exp(x)
#         b: R.Tensor((2, 2), dtype="float32") = R.reshape(a, R.shape([2, 2]))
#         c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         d: R.Tensor((4,), dtype="float32") = R.reshape(b, R.shape([4]))
#         return (c, d)
