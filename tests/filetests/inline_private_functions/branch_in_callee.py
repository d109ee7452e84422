# Inlining a function with a branch splits the dataflow block of the caller.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def choose(c: R.Tensor((), "bool"), a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        if c:
            r = R.exp(a)
        else:
            r = R.sin(a)
        return r

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        with R.dataflow():
            before = R.cos(x)
            y = cls.choose(c, before)
            after = R.add(y, before)
            R.output(after)
        return after

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             before: R.Tensor((n,), dtype="float32") = R.cos(x)
#             R.output(before)
#         if c:
#             gv: R.Tensor((n,), dtype="float32") = R.exp(before)
#             y: R.Tensor((n,), dtype="float32") = gv
#         else:
#             gv1: R.Tensor((n,), dtype="float32") = R.sin(before)
#             y: R.Tensor((n,), dtype="float32") = gv1
#         with R.dataflow():
#             after: R.Tensor((n,), dtype="float32") = R.add(y, before)
#             R.output(after)
#         return after
