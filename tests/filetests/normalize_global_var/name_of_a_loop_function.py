# The new name of the public function belongs to a private loop function, which gets another name.
# test opt --passes=NormalizeGlobalVar
# no-run: the public function changes its name

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def entry(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"global_symbol": "entry"})
        cls = Module
        y = R.call_tir(cls.entry, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def entry1(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("B"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = A[vi] * T.float32(2.0)
#
#     @R.function
#     def entry(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"global_symbol": "entry"})
#         cls = Module
#         y: R.Tensor((4,), dtype="float32") = R.call_tir(cls.entry1, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return y
