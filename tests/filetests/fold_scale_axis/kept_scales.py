# A scale is kept if the convolution has another reader, or if the scale or the weights depend on inputs or vary along other dims.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32"), s: R.Tensor((2, 1, 1), "float32"), w: R.Tensor((2, 2, 1, 1), "float32")) -> R.Object:
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            a = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
            b = R.add(a, c)
            d = R.nn.conv2d(b, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            e = R.multiply(d, s)
            f = R.nn.conv2d(e, w)
            g = R.multiply(f, R.const([[[2.0]], [[4.0]]], "float32"))
            h = R.nn.conv2d(g, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            y = R.multiply(h, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32"), s: R.Tensor((2, 1, 1), dtype="float32"), w: R.Tensor((2, 2, 1, 1), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             a: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(c, R.const([[[2.0]], [[4.0]]], "float32"))
#             b: R.Tensor((n, 2, h, 4), dtype="float32") = R.add(a, c)
#             d: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(b, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             e: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(d, s)
#             f: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(e, w)
#             g: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(f, R.const([[[2.0]], [[4.0]]], "float32"))
#             h1: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(g, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = R.multiply(h1, R.const([1.0, 2.0, 3.0, 4.0], "float32"))
#             R.output(y)
#         return y
