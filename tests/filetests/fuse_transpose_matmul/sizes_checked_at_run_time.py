# The summed sizes may differ, so the matmul stays and checks them at run time.
# test opt --passes=FuseTransposeMatmul
# no-run: the sizes that files run at differ from each other

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def sizes_to_check(x: R.Tensor(("b", "n", "k"), "float32"), w: R.Tensor(("b", "m", "l"), "float32")) -> R.Object:
        with R.dataflow():
            y = R.matmul(x, R.permute_dims(w, axes=[0, 2, 1]))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def sizes_to_check(x: R.Tensor(("b", "n", "k"), dtype="float32"), w: R.Tensor(("b", "m", "l"), dtype="float32")) -> R.Object:
#         b = T.int64()
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         l = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((b, l, m), dtype="float32") = R.permute_dims(w, axes=[0, 2, 1])
#             y: R.Tensor((b, n, m), dtype="float32") = R.matmul(x, lv)
#             R.output(y)
#         return y
