# The tuple is returned as a whole, so all of its fields count as read.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def both(a: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        return (R.exp(a), R.sin(a))

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        t = cls.both(x)
        return t

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def both(a: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         gv: R.Tensor((4,), dtype="float32") = R.exp(a)
#         gv1: R.Tensor((4,), dtype="float32") = R.sin(a)
#         return (gv, gv1)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = cls.both(x)
#         return t
