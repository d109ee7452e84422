# The exponential of the weights moves, but its broadcast to a size of the inputs stays: the size is known only in a call.
# test opt --passes=LiftTransformParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), w: R.Tensor((1,), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"num_input": 1})
        n = T.int64()
        with R.dataflow():
            e = R.exp(w)
            t = R.broadcast_to(e, R.shape([n]))
            y = R.multiply(x, t)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), e: R.Tensor((1,), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             t: R.Tensor((n,), dtype="float32") = R.broadcast_to(e, R.shape([n]))
#             y: R.Tensor((n,), dtype="float32") = R.multiply(x, t)
#             R.output(y)
#         return y
#
#     @R.function
#     def main_transform_params(params: R.Tuple(R.Tensor((1,), dtype="float32"))) -> R.Tuple(R.Tensor((1,), dtype="float32")):
#         R.func_attr({"num_input": 0})
#         with R.dataflow():
#             w: R.Tensor((1,), dtype="float32") = params[0]
#             e: R.Tensor((1,), dtype="float32") = R.exp(w)
#             gv: R.Tuple(R.Tensor((1,), dtype="float32")) = (e,)
#             R.output(gv)
#         return gv
