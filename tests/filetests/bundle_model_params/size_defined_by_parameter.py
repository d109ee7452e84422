# A size that only a parameter defines is still defined by the tuple, since its field has the same type.
# test opt --passes=BundleModelParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "k"), "float32"), w: R.Tensor(("k", "m"), "float32"), b: R.Tensor(("m",), "float32")) -> R.Tensor(("n", "m"), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            y = R.matmul(x, w)
            z = R.add(y, b)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "k"), dtype="float32"), model_params: R.Tuple(R.Tensor(("k", "m"), dtype="float32"), R.Tensor(("m",), dtype="float32"))) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         k = T.int64()
#         m = T.int64()
#         R.func_attr({"num_input": 1})
#         w: R.Tensor((k, m), dtype="float32") = model_params[0]
#         b: R.Tensor((m,), dtype="float32") = model_params[1]
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.matmul(x, w)
#             z: R.Tensor((n, m), dtype="float32") = R.add(y, b)
#             R.output(z)
#         return z
