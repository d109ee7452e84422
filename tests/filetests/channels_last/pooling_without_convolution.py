# Pooling that does not follow a convolution keeps its layout if the kernel is as fast in it.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Overlapping pooling of many channels runs channels-last even without a convolution. Pooling of few channels, pooling of
    # disjoint windows, and average pooling that counts padding, which the kernel does not support, keep their layout.
    @R.function
    def main(
        x: R.Tensor(("n", 32, "h", "w"), "float32"), y: R.Tensor(("n", 3, "h", "w"), "float32")
    ) -> R.Object:
        with R.dataflow():
            a = R.nn.max_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1])
            b = R.nn.avg_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)
            c = R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2])
            d = R.nn.relu(a)
            e = R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2])
            R.output(b, c, d, e)
        return (b, c, d, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 32, "h", "w"), dtype="float32"), y: R.Tensor(("n", 3, "h", "w"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         h = T.int64()
#         w = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 32, h, w), dtype="float32") = R.nn.max_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1])
#             b: R.Tensor((n, 32, h, w), dtype="float32") = R.nn.avg_pool2d(x, pool_size=[3, 3], padding=[1, 1, 1, 1], count_include_pad=True)
#             c: R.Tensor((n, 3, h // 2, w // 2), dtype="float32") = R.nn.max_pool2d(y, pool_size=[2, 2], strides=[2, 2])
#             d: R.Tensor((n, 32, h, w), dtype="float32") = R.nn.relu(a)
#             e: R.Tensor((n, 32, h // 2, w // 2), dtype="float32") = R.nn.max_pool2d(x, pool_size=[2, 2], strides=[2, 2])
#             R.output(b, c, d, e)
#         return (b, c, d, e)
