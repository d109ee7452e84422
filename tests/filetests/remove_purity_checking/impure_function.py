# A function that is impure already keeps its declaration, without the attribute.
# test opt --passes=RemovePurityChecking

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        R.call_packed("test.describe", x)
        y = R.call_pure_packed("test.double", x, sinfo_args=R.Tensor((n,), "float32"))
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         _: R.Object = R.call_packed("test.describe", x)
#         y: R.Tensor((n,), dtype="float32") = R.call_packed("test.double", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         return y
