# No caller reads a field: the function returns the empty tuple, and its effects stay.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True, pure=False)
    def both(a: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        R.call_packed("test.describe", a)
        return (R.exp(a), R.sin(a))

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        t = cls.both(x)
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True, pure=False)
#     def both(a: R.Tensor((4,), dtype="float32")) -> R.Tuple:
#         _: R.Object = R.call_packed("test.describe", a)
#         gv: R.Tensor((4,), dtype="float32") = R.exp(a)
#         gv1: R.Tensor((4,), dtype="float32") = R.sin(a)
#         return R.tuple()
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         t: R.Tuple = cls.both(x)
#         return x
