# Outputs are allocated in the arm that computes them; a call whose result nothing reads is kept.
# test opt --passes=CallTIRRewrite

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("exp"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.exp(A[vi])

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        if c:
            unused = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
            y = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
        else:
            y = x
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("exp"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = T.exp(A[vi])
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         if c:
#             unused: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#             _: R.Tuple = cls.exp(x, unused)
#             gv: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#             _1: R.Tuple = cls.exp(x, gv)
#             y: R.Tensor((4,), dtype="float32") = gv
#         else:
#             y: R.Tensor((4,), dtype="float32") = x
#         return y
