# The patterns of the backend `gemm`: matmuls with a transposed operand, a bias and an activation.
# test opt --passes=FuseOpsByPattern
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32"), v: R.Tensor((3, 8), "float32")):
        n = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(b, lv)
            lv2 = lv1
            lv3 = R.nn.relu(lv2)
            t = R.permute_dims(v)
            lv4 = R.matmul(lv3, t)
            lv5 = R.exp(lv4)
            R.output(lv5)
        return lv5

    @R.function
    def read_twice(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor((8,), "float32")):
        n = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(lv, b)
            lv2 = R.nn.relu(lv1)
            lv3 = R.add(lv2, lv)
            R.output(lv3)
        return lv3

    @R.function
    def not_a_bias(x: R.Tensor(("n", 4), "float32"), w: R.Tensor((4, 8), "float32"), b: R.Tensor(("m",), "float32"), y: R.Tensor(("n", 8), "float32")):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            lv = R.matmul(x, w)
            lv1 = R.add(lv, y)
            lv2 = R.matmul(lv1, R.const([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]], "float32"))
            R.output(lv2)
        return lv2

    @R.function
    def too_few_dims(x: R.Tensor((4,), "float32"), w: R.Tensor((4, 8), "float32")):
        lv = R.matmul(x, w)
        return lv

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32"), v: R.Tensor((3, 8), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv3: R.Tensor((n, 8), dtype="float32") = cls.fused_relax_matmul_relax_add_relax_nn_relu(x, w, b)
#             lv4: R.Tensor((n, 3), dtype="float32") = cls.fused_relax_permute_dims_relax_matmul(v, lv3)
#             lv5: R.Tensor((n, 3), dtype="float32") = R.exp(lv4)
#             R.output(lv5)
#         return lv5
#
#     @R.function
#     def read_twice(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, 8), dtype="float32") = cls.fused_relax_matmul(x, w)
#             lv1: R.Tensor((n, 8), dtype="float32") = R.add(lv, b)
#             lv2: R.Tensor((n, 8), dtype="float32") = R.nn.relu(lv1)
#             lv3: R.Tensor((n, 8), dtype="float32") = R.add(lv2, lv)
#             R.output(lv3)
#         return lv3
#
#     @R.function
#     def not_a_bias(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor(("m",), dtype="float32"), y: R.Tensor(("n", 8), dtype="float32")) -> R.Tensor(("n", 1), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n, 8), dtype="float32") = cls.fused_relax_matmul(x, w)
#             lv1: R.Tensor((n, 8), dtype="float32") = R.add(lv, y)
#             lv2: R.Tensor((n, 1), dtype="float32") = cls.fused_relax_matmul1(lv1)
#             R.output(lv2)
#         return lv2
#
#     @R.function
#     def too_few_dims(x: R.Tensor((4,), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor((8,), dtype="float32"):
#         lv: R.Tensor((8,), dtype="float32") = R.matmul(x, w)
#         return lv
#
#     @R.function(private=True)
#     def fused_relax_matmul_relax_add_relax_nn_relu(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32"), b: R.Tensor((8,), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul_bias_relu", "Primitive": 1})
#         with R.dataflow():
#             lv: R.Tensor((n, 8), dtype="float32") = R.matmul(x, w)
#             lv1: R.Tensor((n, 8), dtype="float32") = R.add(b, lv)
#             lv3: R.Tensor((n, 8), dtype="float32") = R.nn.relu(lv1)
#             R.output(lv3)
#         return lv3
#
#     @R.function(private=True)
#     def fused_relax_permute_dims_relax_matmul(v: R.Tensor((3, 8), dtype="float32"), lv3: R.Tensor(("n", 8), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul_transposed", "Primitive": 1})
#         with R.dataflow():
#             t: R.Tensor((8, 3), dtype="float32") = R.permute_dims(v)
#             lv4: R.Tensor((n, 3), dtype="float32") = R.matmul(lv3, t)
#             R.output(lv4)
#         return lv4
#
#     @R.function(private=True)
#     def fused_relax_matmul(x: R.Tensor(("n", 4), dtype="float32"), w: R.Tensor((4, 8), dtype="float32")) -> R.Tensor(("n", 8), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             lv: R.Tensor((n, 8), dtype="float32") = R.matmul(x, w)
#             R.output(lv)
#         return lv
#
#     @R.function(private=True)
#     def fused_relax_matmul1(lv1: R.Tensor(("n", 8), dtype="float32")) -> R.Tensor(("n", 1), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Composite": "gemm.matmul", "Primitive": 1})
#         with R.dataflow():
#             lv2: R.Tensor((n, 1), dtype="float32") = R.matmul(lv1, R.const([[1.0], [2.0], [3.0], [4.0], [5.0], [6.0], [7.0], [8.0]], "float32"))
#             R.output(lv2)
#         return lv2
