# The new name of the public function belongs to a private one, which gets another name at all of its calls.
# test opt --passes=NormalizeGlobalVar
# no-run: the public function changes its name

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.exp(x)

    @R.function
    def other(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return cls.main(x)

    @R.function
    def entry(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        R.func_attr({"global_symbol": "main"})
        cls = Module
        return cls.main(cls.other(x))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def main1(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function
#     def other(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.main1(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"global_symbol": "main"})
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.other(x)
#         gv1: R.Tensor((2,), dtype="float32") = cls.main1(gv)
#         return gv1
