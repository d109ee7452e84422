# A reduction without init continues from what the output holds, so nothing is inserted.
# test opt --passes=LowerInitBlock

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def continue_sum(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            B[i] = T.float32(1)
        for i, k in T.grid(2, 3):
            with T.block("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                B[vi] = B[vi] + A[vi, vk]

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return R.call_tir(cls.continue_sum, (x,), out_sinfo=R.Tensor((2,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def continue_sum(A: T.Buffer((2, 3), "float32"), B: T.Buffer((2,), "float32")):
#         for i in range(2):
#             B[i] = T.float32(1.0)
#         for i, k in T.grid(2, 3):
#             with T.block("b"):
#                 vi, vk = T.axis.remap("SR", [i, k])
#                 B[vi] = B[vi] + A[vi, vk]
#
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = R.call_tir(cls.continue_sum, (x,), out_sinfo=R.Tensor((2,), dtype="float32"))
#         return gv
