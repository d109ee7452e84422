# A sum of constants, or of parameters alone, is computed once, so expanding it would only add a product.
# test opt --passes=ExpandMatmulOfSum

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def constant(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        with R.dataflow():
            s = R.add(R.const([[1.0, 2.0], [3.0, 4.0]], "float32"), R.const([[0.0, 1.0], [1.0, 0.0]], "float32"))
            y = R.matmul(x, s)
            R.output(y)
        return y

    @R.function
    def parameters(x: R.Tensor(("n", 2), "float32"), w: R.Tensor((2, 2), "float32"), v: R.Tensor((2, 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            s = R.add(w, v)
            y = R.matmul(x, s)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def constant(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             s: R.Tensor((2, 2), dtype="float32") = R.add(R.const([[1.0, 2.0], [3.0, 4.0]], "float32"), R.const([[0.0, 1.0], [1.0, 0.0]], "float32"))
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(x, s)
#             R.output(y)
#         return y
#
#     @R.function
#     def parameters(x: R.Tensor(("n", 2), dtype="float32"), w: R.Tensor((2, 2), dtype="float32"), v: R.Tensor((2, 2), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             s: R.Tensor((2, 2), dtype="float32") = R.add(w, v)
#             y: R.Tensor((n, 2), dtype="float32") = R.matmul(x, s)
#             R.output(y)
#         return y
