# Functions that are composite or primitive already are not searched, so a second run finds nothing.
# test opt --passes=FuseOpsByPattern

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def product(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
        with R.dataflow():
            y = R.matmul(x, w)
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32")) -> R.Tensor(("n", 8), "float32"):
        cls = Module
        with R.dataflow():
            y = cls.product(x, w)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def product(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             y: R.Tensor((n, 8), dtype="float32") = R.matmul(x, w)
#             R.output(y)
#         return y
#
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n, 8), dtype="float32") = cls.product(x, w)
#             R.output(y)
#         return y
