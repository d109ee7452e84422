# With two reduction axes, the init moves in front of both loops.
# test opt --passes=LowerInitBlock

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def largest(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, 3, m), "int32")
        B = T.match_buffer(b, (3,), "int32")
        for i, j, k in T.grid(n, 3, m):
            with T.block("b"):
                vi, vj, vk = T.axis.remap("RSR", [i, j, k])
                with T.init():
                    B[vj] = T.int32(-1)
                B[vj] = T.max(B[vj], A[vi, vj, vk])

    @R.function
    def main(x: R.Tensor(("n", 3, "m"), "int32")) -> R.Tensor((3,), "int32"):
        cls = Module
        return R.call_tir(cls.largest, (x,), out_sinfo=R.Tensor((3,), "int32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def largest(a: T.handle, B: T.Buffer((3,), "int32")):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n, 3, m), "int32")
#         for j in range(3):
#             with T.block("b_init"):
#                 vj = T.axis.spatial(3, j)
#                 B[vj] = T.int32(-1)
#         for i, j, k in T.grid(n, 3, m):
#             with T.block("b"):
#                 vi, vj, vk = T.axis.remap("RSR", [i, j, k])
#                 B[vj] = T.max(B[vj], A[vi, vj, vk])
#
#     @R.function
#     def main(x: R.Tensor(("n", 3, "m"), dtype="int32")) -> R.Tensor((3,), dtype="int32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         gv: R.Tensor((3,), dtype="int32") = R.call_tir(cls.largest, (x,), out_sinfo=R.Tensor((3,), dtype="int32"))
#         return gv
