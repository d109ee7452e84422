# Empty dataflow blocks are dropped wherever they are: in the function, in both branches, and in a local function.
# test opt --passes=Normalize

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            R.output()

        @R.function
        def inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            with R.dataflow():
                R.output()
            return R.exp(y)

        if c:
            with R.dataflow():
                R.output()
            z = inner(x)
        else:
            z = R.negative(x)
            with R.dataflow():
                R.output()
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
#             gv: R.Tensor((n,), dtype="float32") = R.exp(y)
#             return gv
#         if c:
#             gv1: R.Tensor((n,), dtype="float32") = inner(x)
#             z1: R.Tensor((n,), dtype="float32") = gv1
#         else:
#             z: R.Tensor((n,), dtype="float32") = R.negative(x)
#             z1: R.Tensor((n,), dtype="float32") = z
#         return z1
