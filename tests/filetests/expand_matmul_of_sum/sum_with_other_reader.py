# The sum has another reader and is still computed for it.
# test opt --passes=ExpandMatmulOfSum

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), v: R.Tensor((4, 4), "float32")) -> R.Object:
        with R.dataflow():
            s = R.add(w, v)
            y = R.matmul(x, s)
            z = R.exp(s)
            R.output(y, z)
        return (y, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 4), dtype="float32"), v: R.Tensor((4, 4), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tensor((4, 4), dtype="float32") = R.add(w, v)
#             lv: R.Tensor((n, 4), dtype="float32") = R.matmul(x, w)
#             lv1: R.Tensor((n, 4), dtype="float32") = R.matmul(x, v)
#             y: R.Tensor((n, 4), dtype="float32") = R.add(lv, lv1)
#             z: R.Tensor((4, 4), dtype="float32") = R.exp(s)
#             R.output(y, z)
#         return (y, z)
