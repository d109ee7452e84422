# A second run changes nothing: the only model parameter is a tuple already.
# test opt --passes=BundleModelParams,BundleModelParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), v: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        return R.add(R.multiply(x, w), v)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), model_params: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32"))) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_input": 1})
#         w: R.Tensor((4,), dtype="float32") = model_params[0]
#         v: R.Tensor((4,), dtype="float32") = model_params[1]
#         gv: R.Tensor((4,), dtype="float32") = R.multiply(x, w)
#         gv1: R.Tensor((4,), dtype="float32") = R.add(gv, v)
#         return gv1
