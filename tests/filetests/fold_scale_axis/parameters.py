# Scales and weights that are parameters are kept, because they would be multiplied in every run.
# test opt --passes=FoldScaleAxis

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32"), w: R.Tensor((2, 2, 1, 1), "float32"), g: R.Tensor(("c",), "float32")) -> R.Object:
        R.func_attr({"num_input": 1})
        with R.dataflow():
            c = R.nn.conv2d(x, w)
            s = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
            d = R.nn.conv2d(s, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            t = R.nn.batch_norm(d, g, g, g, g, axis=1, training=False)
            y = t[0]
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), w: R.Tensor((2, 2, 1, 1), dtype="float32"), g: R.Tensor(("c",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         c = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             c1: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, w)
#             s: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(c1, R.const([[[2.0]], [[4.0]]], "float32"))
#             d: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(s, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             t: R.Tuple(R.Tensor((n, 2, h, 4), dtype="float32"), R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")) = R.nn.batch_norm(d, g, g, g, g, axis=1, training=False)
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = t[0]
#             R.output(y)
#         return y
