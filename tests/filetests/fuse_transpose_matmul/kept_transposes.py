# Transposes stay if the product is also read directly, is of integers with batch dims, or has a bias.
# test opt --passes=FuseTransposeMatmul

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def plain(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

    @R.function
    def read_twice(x: R.Tensor(("n", "n"), "float32")) -> R.Object:
        with R.dataflow():
            lv = R.matmul(x, x)
            y = R.add(lv, R.permute_dims(lv))
            R.output(y)
        return y

    @R.function
    def integers(x: R.Tensor(("b", "n", "k"), "int32"), w: R.Tensor(("b", "m", "k"), "int32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[0, 2, 1]))
            R.output(y)
        return y

    @R.function
    def with_bias(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("m", "k"), "float32"), c: R.Tensor(("m",), "float32")) -> R.Object:
        with R.dataflow():
            y = R.permute_dims(R.linear(x, w, c), axes=[2, 1, 0])
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def plain(x: R.Tensor(("n", "k"), dtype="float32"), w: R.Tensor(("k", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.matmul(x, w)
#             R.output(y)
#         return y
#
#     @R.function
#     def read_twice(x: R.Tensor(("n", "n"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n, n), dtype="float32") = R.matmul(x, x)
#             lv1: R.Tensor((n, n), dtype="float32") = R.permute_dims(lv)
#             y: R.Tensor((n, n), dtype="float32") = R.add(lv, lv1)
#             R.output(y)
#         return y
#
#     @R.function
#     def integers(x: R.Tensor(("b", "n", "k"), dtype="int32"), w: R.Tensor(("b", "m", "k"), dtype="int32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, k, m), dtype="int32") = R.permute_dims(w, axes=[0, 2, 1])
#             y: R.Tensor((b, n, m), dtype="int32") = R.matmul(x, lv)
#             R.output(y)
#         return y
#
#     @R.function
#     def with_bias(x: R.Tensor(("b", "n", "k"), dtype="float32"), w: R.Tensor(("m", "k"), dtype="float32"), c: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, n, m), dtype="float32") = R.linear(x, w, c)
#             y: R.Tensor((m, n, b), dtype="float32") = R.permute_dims(lv, axes=[2, 1, 0])
#             R.output(y)
#         return y
