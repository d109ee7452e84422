# A private function without the attribute is no part of a region, although it stands between two that are.
# test opt --passes=MergeCompositeFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "one.exp", "Primitive": 1})
        return R.exp(x)

    @R.function(private=True)
    def plain(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.sin(x)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        with R.dataflow():
            a = cls.exp(x)
            b = cls.plain(a)
            c = cls.exp(b)
            R.output(c)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def plain(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         gv: R.Tensor((4,), dtype="float32") = R.sin(x)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = cls.exp_one(x)
#             b: R.Tensor((4,), dtype="float32") = cls.plain(a)
#             c: R.Tensor((4,), dtype="float32") = cls.exp_one(b)
#             R.output(c)
#         return c
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
