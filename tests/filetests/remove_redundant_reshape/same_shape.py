# A reshape to the shape that the tensor has is removed, also if the shape is written in another form.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.reshape(x, R.shape([n, 4]))
            b = R.reshape(a, R.shape([(n * 8) // 8, 4]))
            c = R.exp(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n, 4), dtype="float32") = R.exp(x)
#             R.output(c)
#         return c
