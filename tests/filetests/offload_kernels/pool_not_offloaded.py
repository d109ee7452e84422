# The kernel pools float32 and 16-bit floats: integers, and means that count padding, keep their operators.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 2, 4, 4), "int8"), y: R.Tensor((1, 2, 4, 4), "float32")) -> R.Object:
        with R.dataflow():
            a = R.nn.max_pool2d(x, pool_size=[2, 2])
            b = R.nn.avg_pool2d(y, pool_size=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)
            c = R.nn.avg_pool2d(y, pool_size=[2, 2], padding=[1, 1, 1, 1], count_include_pad=False)
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((1, 2, 4, 4), dtype="int8"), y: R.Tensor((1, 2, 4, 4), dtype="float32")) -> R.Object:
#         with R.dataflow():
#             a: R.Tensor((1, 2, 3, 3), dtype="int8") = R.nn.max_pool2d(x, pool_size=[2, 2])
#             b: R.Tensor((1, 2, 5, 5), dtype="float32") = R.nn.avg_pool2d(y, pool_size=[2, 2], padding=[1, 1, 1, 1], count_include_pad=True)
#             c: R.Tensor((1, 2, 5, 5), dtype="float32") = R.call_kernel("pool", x=y, axes={"x": [0, 1, -1, 2, 3], "out": [0, 1, -1, 2, 3]}, kind="mean", kernel_shape=[1, 2, 2], padding=[0, 1, 1], out_sinfo=R.Tensor((1, 2, 5, 5), dtype="float32"))
#             R.output(a, b, c)
#         return (a, b, c)
