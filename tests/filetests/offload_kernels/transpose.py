# A transpose that moves the last dim becomes a kernel call. One that keeps it copies rows in loops, also if it only moves a dim
# of 1.
# test opt --passes=OffloadKernels

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 3, "m"), "float32"), y: R.Tensor((1, "n", 3), "int8")) -> R.Object:
        with R.dataflow():
            a = R.permute_dims(x, axes=[0, 2, 1])
            b = R.permute_dims(x, axes=[1, 0, 2])
            c = R.permute_dims(y, axes=[1, 0, 2])
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 3, "m"), dtype="float32"), y: R.Tensor((1, "n", 3), dtype="int8")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, m, 3), dtype="float32") = R.call_kernel("transpose", x=x, axes={"x": [0, 2, 1]}, out_sinfo=R.Tensor((n, m, 3), dtype="float32"))
#             b: R.Tensor((3, n, m), dtype="float32") = R.permute_dims(x, axes=[1, 0, 2])
#             c: R.Tensor((n, 1, 3), dtype="int8") = R.permute_dims(y, axes=[1, 0, 2])
#             R.output(a, b, c)
#         return (a, b, c)
