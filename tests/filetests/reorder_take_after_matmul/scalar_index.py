# A single column: the product with a vector becomes an element of the product with the matrix.
# test opt --passes=ReorderTakeAfterMatmul

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 5), "float32"), i: R.Tensor((), "int64")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            c = R.take(w, i, axis=1)
            y = R.matmul(x, c)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 5), dtype="float32"), i: R.Tensor((), dtype="int64")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, 5), dtype="float32") = R.matmul(x, w)
#             y: R.Tensor((n,), dtype="float32") = R.take(lv, i, axis=-1)
#             R.output(y)
#         return y
