# Serial, parallel and vectorized loops are kept, however short they are.
# test opt --passes=UnrollLoop

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def kept(A: T.Buffer((2, 2, 2), "float32"), B: T.Buffer((2, 2, 2), "float32")):
        for i in T.parallel(2):
            for j in range(2):
                for k in T.vectorized(2):
                    B[i, j, k] = A[i, j, k] + T.float32(1)

    @R.function
    def main(x: R.Tensor((2, 2, 2), "float32")) -> R.Tensor((2, 2, 2), "float32"):
        cls = Module
        return R.call_tir(cls.kept, (x,), out_sinfo=R.Tensor((2, 2, 2), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def kept(A: T.Buffer((2, 2, 2), "float32"), B: T.Buffer((2, 2, 2), "float32")):
#         for i in T.parallel(2):
#             for j in range(2):
#                 for k in T.vectorized(2):
#                     B[i, j, k] = A[i, j, k] + T.float32(1.0)
#
#     @R.function
#     def main(x: R.Tensor((2, 2, 2), dtype="float32")) -> R.Tensor((2, 2, 2), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2, 2, 2), dtype="float32") = R.call_tir(cls.kept, (x,), out_sinfo=R.Tensor((2, 2, 2), dtype="float32"))
#         return gv
