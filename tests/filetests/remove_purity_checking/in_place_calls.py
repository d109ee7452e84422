# One function works in place, so every function of the module becomes impure, also those that never call it.
# test opt --passes=RemovePurityChecking

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def in_place(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.exp(x)
        z = R.call_inplace_packed("test.double_inplace", y, inplace_indices=0, sinfo_args=R.Tensor((n,), "float32"))
        return z

    @R.function
    def apart(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def in_place(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         z: R.Tensor((n,), dtype="float32") = R.call_packed("test.double_inplace", y, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         return z
#
#     @R.function(pure=False)
#     def apart(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.exp(x)
#         return gv
