# Bindings that nothing reads are kept, and the blocks around the dataflow block are merged with it.
# test opt --passes=ToNonDataflow

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.call_packed("test.describe", x)
        with R.dataflow():
            unused = R.exp(x)
            a = R.sin(x)
            R.output(a)
        R.call_packed("test.describe", a)
        with R.dataflow():
            b = R.cos(a)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         _: R.Object = R.call_packed("test.describe", x)
#         unused: R.Tensor((n,), dtype="float32") = R.exp(x)
#         a: R.Tensor((n,), dtype="float32") = R.sin(x)
#         _1: R.Object = R.call_packed("test.describe", a)
#         b: R.Tensor((n,), dtype="float32") = R.cos(a)
#         return b
