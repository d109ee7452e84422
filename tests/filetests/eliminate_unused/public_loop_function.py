# A loop function without private=True is public and stays, although no graph function calls it.
# test opt --passes=EliminateUnused

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def public(A: T.Buffer((2,), "float32")):
        for i in range(2):
            A[i] = T.float32(0)

    @T.prim_func(private=True)
    def hidden(A: T.Buffer((2,), "float32")):
        for i in range(2):
            A[i] = T.float32(1)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def public(A: T.Buffer((2,), "float32")):
#         for i in range(2):
#             A[i] = T.float32(0.0)
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
