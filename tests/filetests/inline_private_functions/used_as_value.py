# A function that is passed as a value is inlined at its direct call, but stays for the loop that takes it.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def double(a: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(a, a)

    @R.function(private=True)
    def small(a: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        return R.less(a, R.const(100, "int64"))

    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        y = R.add(cls.double(x), R.const(1, "int64"))
        z = R.while_loop(cls.small, cls.double, y)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def double(a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         gv: R.Tensor((), dtype="int64") = R.add(a, a)
#         return gv
#
#     @R.function(private=True)
#     def small(a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="bool"):
#         gv: R.Tensor((), dtype="bool") = R.less(a, R.const(100, "int64"))
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         cls = Module
#         gv: R.Tensor((), dtype="int64") = R.add(x, x)
#         y: R.Tensor((), dtype="int64") = R.add(gv, R.const(1, "int64"))
#         z: R.Tensor((), dtype="int64") = R.while_loop(cls.small, cls.double, y)
#         return z
