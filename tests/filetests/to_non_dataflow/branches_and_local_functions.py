# Dataflow blocks in local functions become plain, too, and their variables are plain variables afterwards.
# test opt --passes=ToNonDataflow

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()

        @R.function
        def inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            with R.dataflow():
                a = R.exp(y)
                b = R.sin(a)
                R.output(b)
            return b

        if c:
            with R.dataflow():
                d = R.cos(x)
                R.output(d)
            z = inner(d)
        else:
            z = x
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         @R.function
#         def inner(y: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
#             a: R.Tensor((n,), dtype="float32") = R.exp(y)
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             return b
#         if c:
#             d: R.Tensor((n,), dtype="float32") = R.cos(x)
#             gv: R.Tensor((n,), dtype="float32") = inner(d)
#             z: R.Tensor((n,), dtype="float32") = gv
#         else:
#             z: R.Tensor((n,), dtype="float32") = x
#         return z
