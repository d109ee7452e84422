# All parameters are inputs, so there is nothing to bundle; without `num_input`, nothing changes either.
# test opt --passes=BundleModelParams

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def inputs_only(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 2})
        return R.add(x, y)

    @R.function
    def no_attribute(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.add(x, w)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def inputs_only(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_input": 2})
#         gv: R.Tensor((4,), dtype="float32") = R.add(x, y)
#         return gv
#
#     @R.function
#     def no_attribute(x: R.Tensor((4,), dtype="float32"), w: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         gv: R.Tensor((4,), dtype="float32") = R.add(x, w)
#         return gv
