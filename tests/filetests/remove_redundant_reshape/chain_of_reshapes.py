# A chain of reshapes becomes one reshape of its first operand; the intermediate ones stay for dead code elimination.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 6), "float32")) -> R.Tensor((3, "n", 2), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n * 6]))
            b = R.reshape(a, R.shape([2, n, 3]))
            c = R.reshape(b, R.shape([3, n, 2]))
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 6), dtype="float32")) -> R.Tensor((3, "n", 2), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n * 6,), dtype="float32") = R.reshape(x, R.shape([n * 6]))
#             b: R.Tensor((2, n, 3), dtype="float32") = R.reshape(x, R.shape([2, n, 3]))
#             c: R.Tensor((3, n, 2), dtype="float32") = R.reshape(x, R.shape([3, n, 2]))
#             R.output(c)
#         return c
