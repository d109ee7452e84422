# An existing symbol is kept, although it is not the name of the function; a private function gets none.
# test opt --passes=AttachGlobalSymbol

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def helper(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"global_symbol": "entry"})
        cls = Module
        return cls.helper(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def helper(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"global_symbol": "entry"})
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.helper(x)
#         return gv
