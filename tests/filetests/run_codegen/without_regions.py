# Without regions, nothing changes: the attribute `Composite` alone is not for code generators.
# test opt --passes=RunCodegen

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def composite(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        return cls.composite(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def composite(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         gv: R.Tensor((4,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((4,), dtype="float32") = cls.composite(x)
#         return gv
