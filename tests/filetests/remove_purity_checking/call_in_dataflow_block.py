# The plain call has effects, so the dataflow block around it becomes a plain block; a function without such calls keeps its
# block.
# test opt --passes=RemovePurityChecking

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def calls(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            a = R.exp(x)
            b = R.call_pure_packed("test.double", a, sinfo_args=R.Tensor((n,), "float32"))
            c = R.sin(b)
            R.output(c)
        return c

    @R.function
    def no_calls(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            R.output(a)
        return a

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def calls(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         b: R.Tensor((n,), dtype="float32") = R.call_packed("test.double", a, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         c: R.Tensor((n,), dtype="float32") = R.sin(b)
#         return c
#
#     @R.function
#     def no_calls(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             R.output(a)
#         return a
