# An output that overwrites an input is not allocated; the other output is. The functions of the module become impure.
# test opt --passes=CallTIRRewrite

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def step(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("step"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] + T.float32(1)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        y = R.exp(x)
        t = R.call_tir_inplace(cls.step, (y,), inplace_indices=[0, -1], out_sinfo=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        return (t[0], t[1])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def step(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("step"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] + T.float32(1.0)
#                 B[vi] = A[vi] * T.float32(2.0)
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         y: R.Tensor((4,), dtype="float32") = R.exp(x)
#         alloc: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _: R.Tuple = cls.step(y, alloc)
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = (y, alloc)
#         gv: R.Tensor((4,), dtype="float32") = t[0]
#         gv1: R.Tensor((4,), dtype="float32") = t[1]
#         return (gv, gv1)
