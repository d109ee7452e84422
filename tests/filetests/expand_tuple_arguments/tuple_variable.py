# The argument is a variable, not a tuple literal: the caller reads its fields before the call.
# test opt --passes=ExpandTupleArguments

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def total(t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))) -> R.Tensor(("n",), "float32"):
        return R.add(t[0], t[1])

    @R.function
    def main(t: R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))) -> R.Tensor(("n",), "float32"):
        cls = Module
        return cls.total(t)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def total(t_0: R.Tensor(("n",), dtype="float32"), t_1: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv2: R.Tensor((n,), dtype="float32") = R.add(t_0, t_1)
#         return gv2
#
#     @R.function
#     def main(t: R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32"))) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         t_0: R.Tensor((n,), dtype="float32") = t[0]
#         t_1: R.Tensor((n,), dtype="float32") = t[1]
#         gv: R.Tensor((n,), dtype="float32") = cls.total(t_0, t_1)
#         return gv
