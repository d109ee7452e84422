# The entry checks of a callee become match_casts at the call, if they may fail.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def same(a: R.Tensor(("k",), "float32"), b: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        k = T.int64()
        z = R.zeros(R.shape([k]), "float32")
        return R.add(z, R.add(a, b))

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        y: R.Tensor(ndim=1, dtype="float32") = R.add(x, x)
        z = cls.same(x, y)
        return z

    @R.function
    def unknown(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        z = cls.same(x, x)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         y: R.Tensor(dtype="float32", ndim=1) = R.add(x, x)
#         b: R.Tensor((n,), dtype="float32") = R.match_cast(y, R.Tensor((n,), dtype="float32"))
#         z1: R.Tensor((n,), dtype="float32") = R.zeros(R.shape([n]))
#         gv: R.Tensor((n,), dtype="float32") = R.add(x, b)
#         z: R.Tensor((n,), dtype="float32") = R.add(z1, gv)
#         return z
#
#     @R.function
#     def unknown(x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
#         k = T.int64()
#         a: R.Tensor((k,), dtype="float32") = R.match_cast(x, R.Tensor((k,), dtype="float32"))
#         b: R.Tensor((k,), dtype="float32") = R.match_cast(x, R.Tensor((k,), dtype="float32"))
#         z1: R.Tensor((k,), dtype="float32") = R.zeros(R.shape([k]))
#         gv: R.Tensor((k,), dtype="float32") = R.add(a, b)
#         z: R.Tensor((k,), dtype="float32") = R.add(z1, gv)
#         return z
