# Calls of one backend that do not read each other are regions of their own, and equal regions share one function.
# test opt --passes=MergeCompositeFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "one.exp", "Primitive": 1})
        return R.exp(x)

    @R.function
    def main(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = cls.exp(x)
            b = cls.exp(y)
            R.output(a, b)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = cls.exp_one(x)
#             b: R.Tensor((4,), dtype="float32") = cls.exp_one(y)
#             R.output(a, b)
#         return (a, b)
#
#     @R.function(private=True)
#     def exp_one(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x1: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             gv: R.Tensor((4,), dtype="float32") = R.exp(x1)
#             return gv
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = exp(x)
#             R.output(a)
#         return a
