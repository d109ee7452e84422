# A second run changes nothing; other attributes of the function are kept.
# test opt --passes=AttachGlobalSymbol,AttachGlobalSymbol

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"num_input": 1})
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"num_input": 1, "global_symbol": "main"})
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
