# A call with effects between product and bias: no value moves past it.
# test opt --passes=FuseOpsByPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")):
        n = T.int64()
        a = R.matmul(x, w)
        R.call_packed("test.describe", a)
        c = R.add(a, b)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n, 8), dtype="float32") = cls.fused_relax_matmul(x, w)
#         _: R.Object = R.call_packed("test.describe", a)
#         c: R.Tensor((n, 8), dtype="float32") = R.add(a, b)
#         return c
#
#     @R.function(private=True)
#     def fused_relax_matmul(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             a: R.Tensor((n, 8), dtype="float32") = R.matmul(x, w)
#             R.output(a)
#         return a
