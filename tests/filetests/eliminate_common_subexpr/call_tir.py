# Equal calls of loop functions, and of pure functions with equal arguments, are merged.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def twice(var_A: T.handle, var_B: T.handle):
        n = T.int64()
        A = T.match_buffer(var_A, (n,), "float32")
        B = T.match_buffer(var_B, (n,), "float32")
        for i in range(n):
            with T.block("B"):
                vi = T.axis.spatial(n, i)
                B[vi] = A[vi] * T.float32(2)

    @R.function(private=True)
    def square(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.multiply(x, x)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n,), "float32"))
            b = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n,), "float32"))
            c = cls.square(a)
            d = cls.square(b)
            e = R.add(c, d)
            R.output(e)
        return e

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def twice(var_A: T.handle, var_B: T.handle):
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         for i in range(n):
#             with T.block("B"):
#                 vi = T.axis.spatial(n, i)
#                 B[vi] = A[vi] * T.float32(2.0)
#
#     @R.function(private=True)
#     def square(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.multiply(x, x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.twice, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             c: R.Tensor((n,), dtype="float32") = cls.square(a)
#             e: R.Tensor((n,), dtype="float32") = R.add(c, c)
#             R.output(e)
#         return e
