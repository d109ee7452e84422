# Whether `(x @ y) @ z` or `x @ (y @ z)` is cheaper depends on `n` and `m`, so the order stays.
# test opt --passes=AdjustMatmulOrder

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, "n"), "float32"), y: R.Tensor(("n", 3), "float32"), z: R.Tensor((3, "m"), "float32")) -> R.Tensor((2, "m"), "float32"):
        with R.dataflow():
            a = R.matmul(x, y)
            b = R.matmul(a, z)
            R.output(b)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, "n"), dtype="float32"), y: R.Tensor(("n", 3), dtype="float32"), z: R.Tensor((3, "m"), dtype="float32")) -> R.Tensor((2, "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         with R.dataflow():
#             a: R.Tensor((2, 3), dtype="float32") = R.matmul(x, y)
#             b: R.Tensor((2, m), dtype="float32") = R.matmul(a, z)
#             R.output(b)
#         return b
