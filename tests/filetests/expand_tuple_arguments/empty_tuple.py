# An empty tuple has no fields, so its parameter disappears; a field with the name of another parameter gets a new name.
# test opt --passes=ExpandTupleArguments

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def take(t: R.Tuple(R.Tensor((2,), "float32")), none: R.Tuple(), t_0: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.subtract(t[0], t_0)

    @R.function
    def main(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module
        return cls.take((x,), (), y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def take(t_01: R.Tensor((2,), dtype="float32"), t_0: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         gv1: R.Tensor((2,), dtype="float32") = R.subtract(t_01, t_0)
#         return gv1
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32"), y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2,), dtype="float32") = cls.take(x, y)
#         return gv
