# A match_cast is pure and joins the block; the symbol that it defines is used after the block.
# test opt --passes=ConvertToDataflow

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=1, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        m = T.int64()
        a = R.exp(x)
        b = R.match_cast(a, R.Tensor((m,), "float32"))
        R.call_packed("test.describe", b)
        c = R.zeros(R.shape([m]), "float32")
        d = R.add(b, c)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(dtype="float32", ndim=1)) -> R.Tensor(dtype="float32", ndim=1):
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor(dtype="float32", ndim=1) = R.exp(x)
#             b: R.Tensor((m,), dtype="float32") = R.match_cast(a, R.Tensor((m,), dtype="float32"))
#             R.output(b)
#         _: R.Object = R.call_packed("test.describe", b)
#         with R.dataflow():
#             c: R.Tensor((m,), dtype="float32") = R.zeros(R.shape([m]))
#             d: R.Tensor((m,), dtype="float32") = R.add(b, c)
#             R.output(d)
#         return d
