# The input of the convolution is overwritten before its transposed copy would be read again, so the second convolution reads a
# new copy.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((1, 1, 2, 2), "float32")):
        for i, j in T.grid(2, 2):
            with T.block("double"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[0, 0, vi, vj] = A[0, 0, vi, vj] * T.float32(2)

    @R.function
    def main(x: R.Tensor((1, 1, 2, 2), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            y = R.nn.conv2d(a, R.const([[[[0.5]]], [[[2.0]]]], "float32"))
            c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((1, 1, 2, 2), "float32"))
            z = R.nn.conv2d(a, R.const([[[[0.5]]], [[[2.0]]]], "float32"))
            R.output(y, c, z)
        return (y, c, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((1, 1, 2, 2), "float32")):
#         for i, j in T.grid(2, 2):
#             with T.block("double"):
#                 vi, vj = T.axis.remap("SS", [i, j])
#                 A[0, 0, vi, vj] = A[0, 0, vi, vj] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((1, 1, 2, 2), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((1, 1, 2, 2), dtype="float32") = R.exp(x)
#             lv: R.Tensor((1, 2, 2, 1), dtype="float32") = R.permute_dims(a, axes=[0, 2, 3, 1])
#             lv1: R.Tensor((1, 2, 2, 2), dtype="float32") = R.nn.conv2d(lv, R.const([[[[0.5]]], [[[2.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             y: R.Tensor((1, 2, 2, 2), dtype="float32") = R.permute_dims(lv1, axes=[0, 3, 1, 2])
#             c: R.Tensor((1, 1, 2, 2), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((1, 1, 2, 2), dtype="float32"), inplace_indices=[0])
#             lv2: R.Tensor((1, 2, 2, 1), dtype="float32") = R.permute_dims(a, axes=[0, 2, 3, 1])
#             lv3: R.Tensor((1, 2, 2, 2), dtype="float32") = R.nn.conv2d(lv2, R.const([[[[0.5]]], [[[2.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             z: R.Tensor((1, 2, 2, 2), dtype="float32") = R.permute_dims(lv3, axes=[0, 3, 1, 2])
#             R.output(lv, lv1, y, c, lv2, lv3, z)
#         return (y, c, z)
