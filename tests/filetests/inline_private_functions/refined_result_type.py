# A match_cast of the result of an inlined call refines the types of the inlined bindings.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 16), "float32")) -> R.Tensor(("n", 16), "float32"):
        n = T.int64()
        cls = Module
        a = cls.f(x)
        b = R.match_cast(a, R.Tensor((n, 16), "float32"))
        return b

    @R.function(private=True)
    def f(x: R.Tensor(dtype="float32", ndim=2)) -> R.Tensor(dtype="float32", ndim=2):
        y = R.nn.relu(x)
        z = R.exp(y)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 16), dtype="float32")) -> R.Tensor(("n", 16), dtype="float32"):
#         n = T.int64()
#         y: R.Tensor((n, 16), dtype="float32") = R.nn.relu(x)
#         a: R.Tensor((n, 16), dtype="float32") = R.exp(y)
#         b: R.Tensor((n, 16), dtype="float32") = R.match_cast(a, R.Tensor((n, 16), dtype="float32"))
#         return b
