# The arms of a branch get blocks of their own; the branch itself is control flow and stays outside.
# test opt --passes=ConvertToDataflow

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        a = R.exp(x)
        b = R.add(a, x)
        if c:
            d = R.sin(b)
            y = R.multiply(d, d)
        else:
            e = R.cos(b)
            y = R.add(e, e)
        z = R.negative(y)
        w = R.add(z, z)
        return w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             b: R.Tensor((n,), dtype="float32") = R.add(a, x)
#             R.output(b)
#         if c:
#             with R.dataflow():
#                 d: R.Tensor((n,), dtype="float32") = R.sin(b)
#                 gv: R.Tensor((n,), dtype="float32") = R.multiply(d, d)
#                 R.output(gv)
#             y: R.Tensor((n,), dtype="float32") = gv
#         else:
#             with R.dataflow():
#                 e: R.Tensor((n,), dtype="float32") = R.cos(b)
#                 gv1: R.Tensor((n,), dtype="float32") = R.add(e, e)
#                 R.output(gv1)
#             y: R.Tensor((n,), dtype="float32") = gv1
#         with R.dataflow():
#             z: R.Tensor((n,), dtype="float32") = R.negative(y)
#             w: R.Tensor((n,), dtype="float32") = R.add(z, z)
#             R.output(w)
#         return w
