# `A[i + 1]` is inside of `A` for each `i` below `n - 1`, but `A[2]` and `B[n - 1]` are outside for some `n`: each gets an
# assertion.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def next(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n - 1):
            B[i] = A[i + 1]
        B[n - 1] = A[2]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.next, (x,), out_sinfo=R.Tensor((n,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def next(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         for i in range(n - 1):
#             B[i] = A[i + 1]
#         assert 2 < n, "IndexError: index out of bounds: dim 0 of 'A' has n elements"
#         assert 0 <= n - 1, "IndexError: index out of bounds: dim 0 of 'B' has n elements"
#         B[n - 1] = A[2]
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = R.call_tir(cls.next, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return gv
