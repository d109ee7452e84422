# In a function that writes to a transposed result in place, two transposes of one value remain two tensors.
# test opt --passes=ChannelsLast,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((1, 3, 4, 2), "float32")):
        for i, j, k, m in T.grid(1, 3, 4, 2):
            with T.block("double"):
                a, b, c, d = T.axis.remap("SSSS", [i, j, k, m])
                A[a, b, c, d] = A[a, b, c, d] * T.float32(2)

    @R.function
    def main(x: R.Tensor((1, 2, 3, 4), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            c = R.nn.conv2d(x, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"))
            y = R.permute_dims(c, [0, 2, 3, 1])
            z = R.permute_dims(c, [0, 2, 3, 1])
            w = R.call_tir_inplace(cls.double, (y,), [0], out_sinfo=R.Tensor((1, 3, 4, 2), "float32"))
            R.output(w, z)
        return w, z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((1, 3, 4, 2), "float32")):
#         for i, j, k, m in T.grid(1, 3, 4, 2):
#             with T.block("double"):
#                 a, b, c, d = T.axis.remap("SSSS", [i, j, k, m])
#                 A[a, b, c, d] = A[a, b, c, d] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((1, 2, 3, 4), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((1, 3, 4, 2), dtype="float32") = R.permute_dims(x, axes=[0, 2, 3, 1])
#             lv1: R.Tensor((1, 3, 4, 2), dtype="float32") = R.nn.conv2d(lv, R.const([[[[0.5]], [[-1.0]]], [[[2.0]], [[1.0]]]], "float32"), data_layout="NHWC", out_layout="NHWC")
#             c: R.Tensor((1, 2, 3, 4), dtype="float32") = R.permute_dims(lv1, axes=[0, 3, 1, 2])
#             y: R.Tensor((1, 3, 4, 2), dtype="float32") = R.permute_dims(c, axes=[0, 2, 3, 1])
#             z: R.Tensor((1, 3, 4, 2), dtype="float32") = R.permute_dims(c, axes=[0, 2, 3, 1])
#             w: R.Tensor((1, 3, 4, 2), dtype="float32") = R.call_tir_inplace(cls.double, (y,), out_sinfo=R.Tensor((1, 3, 4, 2), dtype="float32"), inplace_indices=[0])
#             R.output(z, w)
#         return (w, z)
