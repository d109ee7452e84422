# Nothing changes if the callers together read every field.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def both(a: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        return (R.exp(a), R.sin(a))

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        cls = Module
        t = cls.both(x)
        u = cls.both(t[0])
        return u[1]

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
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         cls = Module
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = cls.both(x)
#         gv: R.Tensor((4,), dtype="float32") = t[0]
#         u: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = cls.both(gv)
#         gv1: R.Tensor((4,), dtype="float32") = u[1]
#         return gv1
