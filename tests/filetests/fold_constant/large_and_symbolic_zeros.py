# Small filled tensors become constants; large tensors and tensors of symbolic size stay calls.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        with R.dataflow():
            large = R.zeros(R.shape([64, 64]), "float32")
            small = R.zeros(R.shape([2, 2]), "float32")
            open = R.zeros(R.shape([n]), "float32")
            a = R.sum(large)
            b = R.sum(small)
            c = R.add(open, R.add(a, b))
            d = R.add(x, c)
            R.output(d)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         with R.dataflow():
#             large: R.Tensor((64, 64), dtype="float32") = R.zeros(R.shape([64, 64]))
#             open: R.Tensor((n,), dtype="float32") = R.zeros(R.shape([n]))
#             a: R.Tensor((), dtype="float32") = R.sum(large)
#             lv: R.Tensor((), dtype="float32") = R.add(a, R.const(0.0, "float32"))
#             c: R.Tensor((n,), dtype="float32") = R.add(open, lv)
#             d: R.Tensor((n,), dtype="float32") = R.add(x, c)
#             R.output(d)
#         return d
