# A call of a function whose parameters are bundled passes them as one tuple.
# test opt --passes=BundleModelParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def model(x: R.Tensor(("n",), "float32"), w: R.Tensor(("n",), "float32"), b: R.Tensor((), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"num_input": 1})
        return R.add(R.multiply(x, w), b)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        return cls.model(x, x, R.const(1.0, "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def model(x: R.Tensor(("n",), dtype="float32"), model_params: R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor((), dtype="float32"))) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_input": 1})
#         w: R.Tensor((n,), dtype="float32") = model_params[0]
#         b: R.Tensor((), dtype="float32") = model_params[1]
#         gv: R.Tensor((n,), dtype="float32") = R.multiply(x, w)
#         gv1: R.Tensor((n,), dtype="float32") = R.add(gv, b)
#         return gv1
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = cls.model(x, (x, R.const(1.0, "float32")))
#         return gv
