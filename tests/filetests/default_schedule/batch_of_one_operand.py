# The batch axis of the right operand is the batch of one kernel call, in which the left operand has stride 0.
# test opt --passes=LegalizeOps,InlineInjective,CheckBounds,DefaultSchedule

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("m", 8), "float32"), w: R.Tensor(("b", 8, "n"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("m", 8), dtype="float32"), w: R.Tensor(("b", 8, "n"), dtype="float32")) -> R.Object:
#         m = T.int64()
#         b = T.int64()
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((b, m, n), dtype="float32") = R.call_tir(cls.matmul, (x, w), out_sinfo=R.Tensor((b, m, n), dtype="float32"))
#             R.output(y)
#         return y
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         b = T.int64()
#         n = T.int64()
#         A = T.match_buffer(var_A, (m, 8), "float32")
#         B = T.match_buffer(var_B, (b, 8, n), "float32")
#         matmul = T.match_buffer(var_matmul, (b, m, n), "float32")
#         T.evaluate(T.call_kernel("matmul", x=T.view(A, [b, m, 8], strides=[0, 1 * 8, 1]), weight=T.view(B, [b, 8, n], strides=[1 * 8 * n, 1 * n, 1]), out=T.view(matmul, [b, m, n], strides=[1 * m * n, 1 * n, 1])))
