# Packed functions that are declared pure: two equal calls are merged, and calls with different arguments are not.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.call_pure_packed("test.double", x, sinfo_args=R.Tensor((n,), "float32"))
            b = R.call_pure_packed("test.double", x, sinfo_args=R.Tensor((n,), "float32"))
            c = R.call_pure_packed("test.double", y, sinfo_args=R.Tensor((n,), "float32"))
            R.output(a, b, c)
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_pure_packed("test.double", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#             c: R.Tensor((n,), dtype="float32") = R.call_pure_packed("test.double", y, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#             R.output(a, c)
#         return (a, a, c)
