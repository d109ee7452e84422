# The remaining two of three fields move to new indices at all calls.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def three(a: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"), R.Tensor((), "float32")):
        return (R.exp(a), R.sin(a), R.sum(a))

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor((), "float32")):
        cls = Module
        t = cls.three(x)
        u = cls.three(y)
        return (t[0], u[2])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def three(a: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor((), dtype="float32")):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.exp(a)
#         gv1: R.Tensor((n,), dtype="float32") = R.sin(a)
#         gv2: R.Tensor((), dtype="float32") = R.sum(a)
#         return (gv, gv2)
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor((), dtype="float32")):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((), dtype="float32")) = cls.three(x)
#         u: R.Tuple(R.Tensor((m,), dtype="float32"), R.Tensor((), dtype="float32")) = cls.three(y)
#         gv: R.Tensor((n,), dtype="float32") = t[0]
#         gv1: R.Tensor((), dtype="float32") = u[1]
#         return (gv, gv1)
