# Consecutive pure bindings get a dataflow block; an effect ends it, and a single binding gets none.
# test opt --passes=ConvertToDataflow

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        b = R.sin(a)
        d = R.add(a, b)
        u = R.print(d, format="{}")
        alone = R.cos(d)
        if c:
            e = R.exp(alone)
            f = R.add(e, e)
            r = R.add(f, d)
        else:
            r = R.exp(x)
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             d: R.Tensor((n,), dtype="float32") = R.add(a, b)
#             R.output(d)
#         u: R.Tuple = R.print(d, format="{}")
#         alone: R.Tensor((n,), dtype="float32") = R.cos(d)
#         if c:
#             with R.dataflow():
#                 e: R.Tensor((n,), dtype="float32") = R.exp(alone)
#                 f: R.Tensor((n,), dtype="float32") = R.add(e, e)
#                 gv: R.Tensor((n,), dtype="float32") = R.add(f, d)
#                 R.output(gv)
#             r: R.Tensor((n,), dtype="float32") = gv
#         else:
#             gv1: R.Tensor((n,), dtype="float32") = R.exp(x)
#             r: R.Tensor((n,), dtype="float32") = gv1
#         return r
