# A parameter that only defines a size is replaced by this size; its value is not needed.
# test opt --passes=RemoveUnusedParameters

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def zeros(a: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.zeros(R.shape([n]), "float32")

    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        y = cls.zeros(x)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def zeros(param_n: R.Prim(value="n")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.zeros(R.shape([n]))
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         y: R.Tensor((n,), dtype="float32") = cls.zeros(R.prim_value(n))
#         return y
