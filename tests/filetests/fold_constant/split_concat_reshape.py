# Tuples of constants, concatenations and reshapes are evaluated.
# test opt --passes=FoldConstant

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32")) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor((2,), "float32")):
        with R.dataflow():
            c = R.const([1.0, 2.0, 3.0, 4.0], "float32")
            a = R.add(c, R.const(1.0, "float32"))
            s = R.split(a, 2, axis=0)
            left = s[0]
            right = s[1]
            joined = R.concat((right, left), axis=0)
            shaped = R.reshape(joined, R.shape([1, 4]))
            y = R.multiply(x, shaped)
            R.output(y, left)
        return (y, left)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tuple(R.Tensor(("n", 4), dtype="float32"), R.Tensor((2,), dtype="float32")):
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, 4), dtype="float32") = R.multiply(x, R.const([[4.0, 5.0, 2.0, 3.0]], "float32"))
#             R.output(y)
#         return (y, R.const([2.0, 3.0], "float32"))
