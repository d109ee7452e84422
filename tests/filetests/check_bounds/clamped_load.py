# The load position is clamped and its upper bound is asserted, so the loop needs no assertion.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, at: T.handle, out: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        At = T.match_buffer(at, (1,), "int64")
        Out = T.match_buffer(out, (m,), "float32")
        first: T.int64 = T.max(T.min(At[0], m - 1), 0)
        assert first + n <= m, "the part is longer than the result"
        for i in range(n):
            Out[first + i] = A[i]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def main(a: T.handle, At: T.Buffer((1,), "int64"), out: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         Out = T.match_buffer(out, (m,), "float32")
#         first: T.int64 = T.max(T.min(At[0], m - 1), 0)
#         assert first + n <= m, "the part is longer than the result"
#         for i in range(n):
#             Out[first + i] = A[i]
