# Loop functions that keep the linear index of every element become reshapes; a transpose does not.
# test opt --passes=RewriteDataflowReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def fold(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n * 6,), "float32")
        B = T.match_buffer(b, (n, 2, 3), "float32")
        for i, j, k in T.grid(n, 2, 3):
            with T.block("fold"):
                vi, vj, vk = T.axis.remap("SSS", [i, j, k])
                B[vi, vj, vk] = A[vi * 6 + vj * 3 + vk]

    @T.prim_func(private=True)
    def swap(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 1), "float32")
        B = T.match_buffer(b, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.block("swap"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    @T.prim_func(private=True)
    def turn(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 2), "float32")
        B = T.match_buffer(b, (2, n), "float32")
        for i, j in T.grid(2, n):
            with T.block("turn"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vj, vi]

    @T.prim_func(private=True)
    def head(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n, 2), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("head"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi // 2, vi % 2]

    @R.function
    def main(x: R.Tensor(("n", 2, 3), "float32"), y: R.Tensor(("n", 1), "float32"), z: R.Tensor(("n", 2), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        with R.dataflow():
            flat = R.reshape(x, R.shape([n * 6]))
            again = R.call_tir(cls.fold, (flat,), out_sinfo=R.Tensor((n, 2, 3), "float32"))
            row = R.call_tir(cls.swap, (y,), out_sinfo=R.Tensor((1, n), "float32"))
            turned = R.call_tir(cls.turn, (z,), out_sinfo=R.Tensor((2, n), "float32"))
            first = R.call_tir(cls.head, (z,), out_sinfo=R.Tensor((n,), "float32"))
            out = R.call_tir(cls.swap, (y,), out_sinfo=R.Tensor((1, n), "float32"))
            a = R.exp(again)
            b = R.exp(row)
            c = R.exp(turned)
            d = R.exp(first)
            R.output(out, a, b, c, d)
        return (out, a, b, c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def fold(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n * 6,), "float32")
#         B = T.match_buffer(b, (n, 2, 3), "float32")
#         for i, j, k in T.grid(n, 2, 3):
#             with T.block("fold"):
#                 vi, vj, vk = T.axis.remap("SSS", [i, j, k])
#                 B[vi, vj, vk] = A[vi * 6 + vj * 3 + vk]
#
#     @T.prim_func(private=True)
#     def swap(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n, 1), "float32")
#         B = T.match_buffer(b, (1, n), "float32")
#         for i, j in T.grid(1, n):
#             with T.block("swap"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vj, vi]
#
#     @T.prim_func(private=True)
#     def turn(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n, 2), "float32")
#         B = T.match_buffer(b, (2, n), "float32")
#         for i, j in T.grid(2, n):
#             with T.block("turn"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 B[vi, vj] = A[vj, vi]
#
#     @T.prim_func(private=True)
#     def head(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n, 2), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         for i in range(n):
#             with T.block("head"):
#                 vi = T.axis.spatial(n, i)
#                 B[vi] = A[vi // 2, vi % 2]
#
#     @R.function
#     def main(x: R.Tensor(("n", 2, 3), dtype="float32"), y: R.Tensor(("n", 1), dtype="float32"), z: R.Tensor(("n", 2), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             flat: R.Tensor((n * 6,), dtype="float32") = R.reshape(x, R.shape([n * 6]))
#             again: R.Tensor((n, 2, 3), dtype="float32") = R.reshape(flat, R.shape([n, 2, 3]))
#             row: R.Tensor((1, n), dtype="float32") = R.reshape(y, R.shape([1, n]))
#             turned: R.Tensor((2, n), dtype="float32") = R.call_tir(cls.turn, (z,), out_sinfo=R.Tensor((2, n), dtype="float32"))
#             first: R.Tensor((n,), dtype="float32") = R.call_tir(cls.head, (z,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             out: R.Tensor((1, n), dtype="float32") = R.call_tir(cls.swap, (y,), out_sinfo=R.Tensor((1, n), dtype="float32"))
#             a: R.Tensor((n, 2, 3), dtype="float32") = R.exp(again)
#             b: R.Tensor((1, n), dtype="float32") = R.exp(row)
#             c: R.Tensor((2, n), dtype="float32") = R.exp(turned)
#             d: R.Tensor((n,), dtype="float32") = R.exp(first)
#             R.output(out, a, b, c, d)
#         return (out, a, b, c, d)
