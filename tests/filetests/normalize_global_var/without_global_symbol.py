# Functions without the attribute keep their names; so does a private function, even if it has the attribute.
# test opt --passes=NormalizeGlobalVar

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"global_symbol": "other"})
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return cls.helper(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def helper(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"global_symbol": "other"})
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.helper(x)
#         return gv
