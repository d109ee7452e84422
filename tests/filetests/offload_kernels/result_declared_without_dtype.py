# A result declared without a data type has the type of the kernel's result.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("m", "n")):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y: R.Tensor((m, n)) = R.permute_dims(x)
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Tensor(("m", "n")):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             y: R.Tensor((m, n)) = R.call_kernel("transpose", x=x, axes={"x": [1, 0]}, out_sinfo=R.Tensor((m, n), dtype="float32"))
#             R.output(y)
#         return y
