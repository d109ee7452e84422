# The caller does not know the size that the unused parameter defines, so the parameter stays.
# test opt --passes=RemoveUnusedParameters

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def zeros(a: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.zeros(R.shape([n]), "float32")

    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        y = cls.zeros(x)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def zeros(a: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.zeros(R.shape([n]))
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
#         cls = Module
#         y: R.Tensor(dtype="float32", ndim=1) = cls.zeros(x)
#         return y
