# A function that returns from an arm of a branch: the rest of the caller goes on with either value.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def clamp(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        if R.less(x, R.const(0.0, "float32")):
            return R.const(0.0, "float32")
        y = R.sqrt(x)
        return y

    @R.function
    def main(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        a = cls.clamp(x)
        b = R.add(a, R.const(1.0, "float32"))
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((), dtype="float32")) -> R.Tensor((), dtype="float32"):
#         gv: R.Tensor((), dtype="bool") = R.less(x, R.const(0.0, "float32"))
#         if gv:
#             a: R.Tensor((), dtype="float32") = R.const(0.0, "float32")
#         else:
#             y: R.Tensor((), dtype="float32") = R.sqrt(x)
#             a: R.Tensor((), dtype="float32") = y
#         b: R.Tensor((), dtype="float32") = R.add(a, R.const(1.0, "float32"))
#         return b
