# The sum of no elements is the initial value: the init runs also if the reduction has no iteration.
# test opt --passes=LowerInitBlock

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def total(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (2, n), "float32")
        B = T.match_buffer(b, (2,), "float32")
        for i, k in T.grid(2, n):
            with T.block("b"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(5)
                B[vi] = B[vi] + A[vi, vk]

    @R.function
    def main(x: R.Tensor((2, "n"), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((2,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def total(a: T.handle, B: T.Buffer((2,), "float32")):
#         n = T.int64()
#         A = T.match_buffer(a, (2, n), "float32")
#         for i in range(2):
#             with T.block("b_init"):
#                 vi = T.axis.spatial(2, i)
#                 B[vi] = T.float32(5.0)
#             for k in range(n):
#                 with T.block("b"):
#                     vi, vk = T.axis.remap("SR", [i, k])
#                     B[vi] = B[vi] + A[vi, vk]
#
#     @R.function
#     def main(x: R.Tensor((2, "n"), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = R.call_tir(cls.total, (x,), out_sinfo=R.Tensor((2,), dtype="float32"))
#         return gv
