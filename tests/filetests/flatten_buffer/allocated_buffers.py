# Allocated buffers are flattened, too; a dim of 1 adds nothing to the index.
# test opt --passes=FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def through(A: T.Buffer((3, 1, 2), "float32"), B: T.Buffer((3, 1, 2), "float32")):
        C = T.alloc_buffer((1, 3, 2), "float32")
        for i, j in T.grid(3, 2):
            C[0, i, j] = A[i, 0, j]
        for i, j in T.grid(3, 2):
            B[i, 0, j] = C[0, 2 - i, j]

    @R.function
    def main(x: R.Tensor((3, 1, 2), "float32")) -> R.Tensor((3, 1, 2), "float32"):
        cls = Module
        return R.call_tir(cls.through, (x,), out_sinfo=R.Tensor((3, 1, 2), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def through(A: T.Buffer((3, 1, 2), "float32"), B: T.Buffer((3, 1, 2), "float32")):
#         T.func_attr({"tir.flat": True})
#         C = T.alloc_buffer((1, 3, 2), "float32")
#         for i, j in T.grid(3, 2):
#             C[i * 2 + j] = A[i * 2 + j]
#         for i, j in T.grid(3, 2):
#             B[i * 2 + j] = C[(2 - i) * 2 + j]
#
#     @R.function
#     def main(x: R.Tensor((3, 1, 2), dtype="float32")) -> R.Tensor((3, 1, 2), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((3, 1, 2), dtype="float32") = R.call_tir(cls.through, (x,), out_sinfo=R.Tensor((3, 1, 2), dtype="float32"))
#         return gv
