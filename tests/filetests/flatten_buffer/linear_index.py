# The linear index is the sum of the indices times the sizes of the later dims; a scalar has index 0.
# test opt --passes=FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def pick(a: T.handle, B: T.Buffer((), "float32")):
        n = T.int64()
        m = T.int64()
        A = T.match_buffer(a, (n, m, 4), "float32")
        B[()] = T.float32(0)
        if n > 1:
            if m > 2:
                B[()] = A[1, 2, 3]

    @R.function
    def main(x: R.Tensor(("n", "m", 4), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        return R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def pick(a: T.handle, B: T.Buffer((), "float32")):
#         T.func_attr({"tir.flat": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(a, (n, m, 4), "float32")
#         B[0] = T.float32(0.0)
#         if n > 1:
#             if m > 2:
#                 B[0] = A[(1 * m + 2) * 4 + 3]
#
#     @R.function
#     def main(x: R.Tensor(("n", "m", 4), dtype="float32")) -> R.Tensor((), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         gv: R.Tensor((), dtype="float32") = R.call_tir(cls.pick, (x,), out_sinfo=R.Tensor((), dtype="float32"))
#         return gv
