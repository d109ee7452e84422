# The condition of a block becomes an `if` inside of its loops, and its axes become the values bound to them.
# test opt --passes=ConvertBlocksToLoops

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def copy(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for io, ii in T.grid((n + 3) // 4, 4):
            with T.block("b"):
                vi = T.axis.spatial(n, io * 4 + ii)
                T.where(io * 4 + ii < n)
                B[vi] = A[vi]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def copy(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         for io, ii in T.grid((n + 3) // 4, 4):
#             if io * 4 + ii < n:
#                 B[io * 4 + ii] = A[io * 4 + ii]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
