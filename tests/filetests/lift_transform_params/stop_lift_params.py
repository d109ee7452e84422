# `stop_lift_params` ends the part that moves: the cast before it runs once, the exponential after it in every call.
# test opt --passes=LiftTransformParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float16")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        with R.dataflow():
            a = R.astype(w, "float32")
            b = R.builtin.stop_lift_params(a)
            c = R.exp(b)
            d = R.add(x, c)
            R.output(d)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), a: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_input": 1})
#         with R.dataflow():
#             b: R.Tensor((4,), dtype="float32") = R.builtin.stop_lift_params(a)
#             c: R.Tensor((4,), dtype="float32") = R.exp(b)
#             d: R.Tensor((4,), dtype="float32") = R.add(x, c)
#             R.output(d)
#         return d
#
#     @R.function
#     def main_transform_params(params: R.Tuple(R.Tensor((4,), dtype="float16"))) -> R.Tuple(R.Tensor((4,), dtype="float32")):
#         R.func_attr({"num_input": 0})
#         with R.dataflow():
#             w: R.Tensor((4,), dtype="float16") = params[0]
#             a: R.Tensor((4,), dtype="float32") = R.astype(w, dtype="float32")
#             gv: R.Tuple(R.Tensor((4,), dtype="float32")) = (a,)
#             R.output(gv)
#         return gv
