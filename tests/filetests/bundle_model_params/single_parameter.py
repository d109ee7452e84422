# A single parameter becomes a tuple of one field, also if it is a shape, whose symbol stays defined.
# test opt --passes=BundleModelParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        return R.multiply(x, w)

    @R.function
    def shape(x: R.Tensor(("n",), "float32"), s: R.Shape(["k"])) -> R.Tensor(("k",), "float32"):
        R.func_attr({"num_input": 1})
        k = T.int64()
        return R.zeros(R.shape([k]), "float32")

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), model_params: R.Tuple(R.Tensor((4,), dtype="float32"))) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_input": 1})
#         w: R.Tensor((4,), dtype="float32") = model_params[0]
#         gv: R.Tensor((4,), dtype="float32") = R.multiply(x, w)
#         return gv
#
#     @R.function
#     def shape(x: R.Tensor(("n",), dtype="float32"), model_params: R.Tuple(R.Shape(["k"]))) -> R.Tensor(("k",), dtype="float32"):
#         n = T.int64()
#         k = T.int64()
#         R.func_attr({"num_input": 1})
#         s: R.Shape([k]) = model_params[0]
#         gv: R.Tensor((k,), dtype="float32") = R.zeros(R.shape([k]))
#         return gv
