# The sum is an output, so it cannot be inside of a match that ends with the activation; product and bias match.
# test opt --passes=FuseOpsByPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.matmul(x, w)
            c = R.add(a, b)
            d = R.nn.relu(c)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32")) -> R.Tuple(R.Tensor(("n", 8), dtype="float32"), R.Tensor(("n", 8), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             c: R.Tensor((n, 8), dtype="float32") = cls.fused_relax_matmul_relax_add(x, w, b)
#             d: R.Tensor((n, 8), dtype="float32") = R.nn.relu(c)
#             R.output(c, d)
#         return (c, d)
#
#     @R.function(private=True)
#     def fused_relax_matmul_relax_add(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul_bias", "Primitive": 1})
#         with R.dataflow():
#             a: R.Tensor((n, 8), dtype="float32") = R.matmul(x, w)
#             c: R.Tensor((n, 8), dtype="float32") = R.add(a, b)
#             R.output(c)
#         return c
