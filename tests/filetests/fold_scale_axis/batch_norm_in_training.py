# A batch normalization that computes the statistics of the batch, or whose statistics are read, is kept.
# test opt --passes=FoldScaleAxis,FoldConstant,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2, "h", 4), "float32")) -> R.Object:
        with R.dataflow():
            v = R.const([1.0, 2.0], "float32")
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            t = R.nn.batch_norm(c, v, v, v, v, axis=1, training=True)
            a = t[0]
            d = R.nn.conv2d(a, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            u = R.nn.batch_norm(d, v, v, v, v, axis=1, training=False)
            y = u[0]
            z = u[1]
            R.output(y, z)
        return y, z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2, "h", 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         with R.dataflow():
#             c: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             t: R.Tuple(R.Tensor((n, 2, h, 4), dtype="float32"), R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")) = R.nn.batch_norm(c, R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), axis=1)
#             a: R.Tensor((n, 2, h, 4), dtype="float32") = t[0]
#             d: R.Tensor((n, 2, h, 4), dtype="float32") = R.nn.conv2d(a, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
#             u: R.Tuple(R.Tensor((n, 2, h, 4), dtype="float32"), R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")) = R.nn.batch_norm(d, R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), R.const([1.0, 2.0], "float32"), axis=1, training=False)
#             y: R.Tensor((n, 2, h, 4), dtype="float32") = u[0]
#             z: R.Tensor((2,), dtype="float32") = u[1]
#             R.output(y, z)
#         return (y, z)
