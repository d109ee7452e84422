# Dims of 1 come and go freely, also between symbolic dims.
# test opt --passes=RewriteDataflowReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def expand(a: T.handle, b: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m), "float32")
        B = T.match_buffer(b, (n, 1, m, 1), "float32")
        for i, j, k, l in T.grid(n, 1, m, 1):
            with T.block("b"):
                vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
                B[vi, vj, vk, vl] = A[vi, vk]

    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", 1, "m", 1), "float32"):
        n = T.int64()
        m = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.expand, (x,), out_sinfo=R.Tensor((n, 1, m, 1), "float32"))
            b = R.exp(a)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def expand(a: T.handle, b: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n, m), "float32")
#         B = T.match_buffer(b, (n, 1, m, 1), "float32")
#         for i, j, k, l in T.grid(n, 1, m, 1):
#             with T.block("b"):
#                 vi, vj, vk, vl = T.axis.remap("SSSS", [i, j, k, l])
#                 B[vi, vj, vk, vl] = A[vi, vk]
#
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", 1, "m", 1), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 1, m, 1), dtype="float32") = R.reshape(x, R.shape([n, 1, m, 1]))
#             b: R.Tensor((n, 1, m, 1), dtype="float32") = R.exp(a)
#             R.output(b)
#         return b
