# A tuple parameter that the body also returns as a whole is rebuilt under its name.
# test opt --passes=ExpandTupleArguments

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def pass_on(t: R.Tuple(R.Tensor((4,), "float32"), R.Tensor((), "int64"))) -> R.Tuple(R.Tensor((4,), "float32"), R.Tuple(R.Tensor((4,), "float32"), R.Tensor((), "int64"))):
        a = R.exp(t[0])
        return (a, t)

    @R.function
    def main(x: R.Tensor((4,), "float32"), i: R.Tensor((), "int64")) -> R.Object:
        cls = Module
        y = cls.pass_on((x, i))
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def pass_on(t_0: R.Tensor((4,), dtype="float32"), t_1: R.Tensor((), dtype="int64")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((), dtype="int64"))):
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((), dtype="int64")) = (t_0, t_1)
#         a: R.Tensor((4,), dtype="float32") = R.exp(t_0)
#         return (a, t)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32"), i: R.Tensor((), dtype="int64")) -> R.Object:
#         cls = Module
#         y: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((), dtype="int64"))) = cls.pass_on(x, i)
#         return y
