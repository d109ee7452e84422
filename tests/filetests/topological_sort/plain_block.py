# Plain blocks keep their order, since their calls may have effects.
# test opt --passes=TopologicalSort

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        b = R.sin(x)
        R.call_packed("test.describe", b)
        c = R.cos(a)
        d = R.add(b, c)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         b: R.Tensor((n,), dtype="float32") = R.sin(x)
#         _: R.Object = R.call_packed("test.describe", b)
#         c: R.Tensor((n,), dtype="float32") = R.cos(a)
#         d: R.Tensor((n,), dtype="float32") = R.add(b, c)
#         return d
