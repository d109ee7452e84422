# Softmax along the last axis becomes a kernel call; along another axis, or of another type, it stays an operator.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def last_axis(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.nn.softmax(x, axis=1)
            R.output(y)
        return y

    @R.function
    def logarithm(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.nn.log_softmax(x, axis=-1)
            R.output(y)
        return y

    @R.function
    def other_axis(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.nn.softmax(x, axis=0)
            R.output(y)
        return y

    @R.function
    def other_type(x: R.Tensor(("n", "m"), "float64")) -> R.Tensor(("n", "m"), "float64"):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.nn.softmax(x, axis=-1)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def last_axis(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.call_kernel("softmax", x=x, out_sinfo=R.Tensor((n, m), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def logarithm(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.call_kernel("softmax", x=x, log=True, out_sinfo=R.Tensor((n, m), dtype="float32"))
#             R.output(y)
#         return y
#
#     @R.function
#     def other_axis(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float32") = R.nn.softmax(x, axis=0)
#             R.output(y)
#         return y
#
#     @R.function
#     def other_type(x: R.Tensor(("n", "m"), dtype="float64")) -> R.Tensor(("n", "m"), dtype="float64"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n, m), dtype="float64") = R.nn.softmax(x)
#             R.output(y)
#         return y
