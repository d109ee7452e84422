# Reshapes of reshapes read the original tensor, inside of branches too.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n * 2",), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([2, n]))
            b = R.reshape(a, R.shape([2, n]))
            R.output(b)
        if c:
            d = R.reshape(b, R.shape([n, 2]))
            r = R.reshape(R.exp(d), R.shape([n * 2]))
        else:
            r = R.reshape(b, R.shape([n * 2]))
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n * 2",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((2, n), dtype="float32") = R.reshape(x, R.shape([2, n]))
#             b: R.Tensor((2, n), dtype="float32") = R.reshape(x, R.shape([2, n]))
#             R.output(b)
#         if c:
#             gv: R.Tensor((n, 2), dtype="float32") = R.exp(x)
#             gv1: R.Tensor((n * 2,), dtype="float32") = R.reshape(gv, R.shape([n * 2]))
#             r: R.Tensor((n * 2,), dtype="float32") = gv1
#         else:
#             gv2: R.Tensor((n * 2,), dtype="float32") = R.reshape(x, R.shape([n * 2]))
#             r: R.Tensor((n * 2,), dtype="float32") = gv2
#         return r
