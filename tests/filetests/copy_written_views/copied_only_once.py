# A view is copied only once, since later passes see the copy.
# test opt --passes=CopyWrittenViews,RemovePurityChecking,CallTIRRewrite

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(a: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        for i in range(m):
            with T.block("increase"):
                vi = T.axis.spatial(m, i)
                A[vi] = A[vi] + T.float32(1)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n", 1), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        a = R.exp(x)
        v = R.reshape(a, R.shape([n, 1]))
        b = R.call_tir_inplace(cls.increase, (a,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        return (v, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def increase(a: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         for i in range(m):
#             with T.block("increase"):
#                 vi = T.axis.spatial(m, i)
#                 A[vi] = A[vi] + T.float32(1.0)
#
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n", 1), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         v_view: R.Tensor((n, 1), dtype="float32") = R.reshape(a, R.shape([n, 1]))
#         v: R.Tensor((n, 1), dtype="float32") = R.call_packed("vm.builtin.copy_tensor", v_view, sinfo_args=(R.Tensor((n, 1), dtype="float32"),))
#         _: R.Tuple = cls.increase(a)
#         b: R.Tensor((n,), dtype="float32") = a
#         return (v, b)
