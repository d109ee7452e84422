# An unused branch is removed, but a branch with an effect in one arm stays and keeps only what the effect needs.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        if c:
            a = R.exp(x)
            y = R.sin(a)
        else:
            y = x
        if c:
            b = R.exp(x)
            R.call_packed("test.describe", b)
            z = R.sin(b)
        else:
            z = R.cos(x)
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         if c:
#             b: R.Tensor((n,), dtype="float32") = R.exp(x)
#             _: R.Object = R.call_packed("test.describe", b)
#             gv1: R.Tensor((n,), dtype="float32") = R.sin(b)
#             z: R.Tensor((n,), dtype="float32") = gv1
#         else:
#             gv2: R.Tensor((n,), dtype="float32") = R.cos(x)
#             z: R.Tensor((n,), dtype="float32") = gv2
#         return x
