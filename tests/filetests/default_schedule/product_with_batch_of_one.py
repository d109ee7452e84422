# A product with a constant batch of 1, whose axis no operand reads: one call of the matmul kernel.
# test opt --passes=DefaultSchedule

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def product(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (1, n, 32), "float32")
        B = T.match_buffer(b, (1, m, 32), "float32")
        C = T.match_buffer(c, (1, n, m), "float32")
        for i, j, l, k in T.grid(1, n, m, 32):
            with T.block("product"):
                vi, vj, vl, vk = T.axis.remap("SSSR", [i, j, l, k])
                with T.init():
                    C[vi, vj, vl] = T.float32(0.0)
                C[vi, vj, vl] = C[vi, vj, vl] + A[0, vj, vk] * B[0, vl, vk]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def product(a: T.handle, b: T.handle, c: T.handle):
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (1, n, 32), "float32")
#         B = T.match_buffer(b, (1, m, 32), "float32")
#         C = T.match_buffer(c, (1, n, m), "float32")
#         for vi in range(1):
#             T.evaluate(T.call_kernel("matmul", x=T.view(A, [1, n, 32], strides=[0, 1 * 32, 1]), weight=T.view(B, [1, 32, m], strides=[0, 1, 1 * 32]), out=T.view(C, [1, n, m], strides=[0, 1 * m, 1], offset=vi * n * m)))
