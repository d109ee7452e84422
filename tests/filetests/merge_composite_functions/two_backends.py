# Neighbours of different backends become two regions.
# test opt --passes=MergeCompositeFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "one.exp", "Primitive": 1})
        return R.exp(x)

    @R.function(private=True)
    def sin(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "two.sin", "Primitive": 1})
        return R.sin(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            a = cls.exp(x)
            b = cls.exp(a)
            c = cls.sin(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((4,), dtype="float32") = cls.fused_one_region(x)
#             c: R.Tensor((4,), dtype="float32") = cls.sin_two(b)
#             R.output(c)
#         return c
#
#     @R.function(private=True)
#     def fused_one_region(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x1: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             gv: R.Tensor((4,), dtype="float32") = R.exp(x1)
#             return gv
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = exp(x)
#             b: R.Tensor((4,), dtype="float32") = exp(a)
#             R.output(b)
#         return b
#
#     @R.function(private=True)
#     def sin_two(b: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Codegen": "two"})
#         @R.function
#         def sin(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#             R.func_attr({"Composite": "two.sin", "Primitive": 1})
#             gv: R.Tensor((4,), dtype="float32") = R.sin(x)
#             return gv
#         with R.dataflow():
#             c: R.Tensor((4,), dtype="float32") = sin(b)
#             R.output(c)
#         return c
