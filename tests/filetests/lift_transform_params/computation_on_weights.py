# What depends only on the weights moves to the function that runs once; the bias, which is used unchanged, is passed through.
# test opt --passes=LiftTransformParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 4), "float32"), b: R.Tensor((4,), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            t = R.permute_dims(w, axes=[1, 0])
            u = R.multiply(t, R.const(2.0, "float32"))
            y = R.matmul(x, u)
            z = R.add(y, b)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), b: R.Tensor((4,), dtype="float32"), u: R.Tensor((4, 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             y: R.Tensor((n, 4), dtype="float32") = R.matmul(x, u)
#             z: R.Tensor((n, 4), dtype="float32") = R.add(y, b)
#             R.output(z)
#         return z
#
#     @R.function
#     def main_transform_params(params: R.Tuple(R.Tensor((4, 4), dtype="float32"), R.Tensor((4,), dtype="float32"))) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4, 4), dtype="float32")):
#         R.func_attr({"num_input": 0})
#         with R.dataflow():
#             w: R.Tensor((4, 4), dtype="float32") = params[0]
#             b: R.Tensor((4,), dtype="float32") = params[1]
#             t: R.Tensor((4, 4), dtype="float32") = R.permute_dims(w, axes=[1, 0])
#             u: R.Tensor((4, 4), dtype="float32") = R.multiply(t, R.const(2.0, "float32"))
#             gv: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4, 4), dtype="float32")) = (b, u)
#             R.output(gv)
#         return gv
