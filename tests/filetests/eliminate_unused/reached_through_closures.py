# Functions that are reached only as values stay: the body of a loop, and a captured function.
# test opt --passes=EliminateUnused

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def less(a: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
        return R.less(a, R.const(9, "int64"))

    @R.function(private=True)
    def next(a: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        return cls.add(a, R.const(4, "int64"))

    @R.function(private=True)
    def add(a: R.Tensor((), "int64"), b: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.add(a, b)

    @R.function(private=True)
    def never(a: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        return cls.next(a)

    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Object:
        cls = Module
        y = R.while_loop(cls.less, cls.next, x)
        f = R.make_closure(cls.add, (y,))
        return (y, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def less(a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="bool"):
#         gv: R.Tensor((), dtype="bool") = R.less(a, R.const(9, "int64"))
#         return gv
#
#     @R.function(private=True)
#     def next(a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         cls = Module
#         gv: R.Tensor((), dtype="int64") = cls.add(a, R.const(4, "int64"))
#         return gv
#
#     @R.function(private=True)
#     def add(a: R.Tensor((), dtype="int64"), b: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         gv: R.Tensor((), dtype="int64") = R.add(a, b)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((), dtype="int64")) -> R.Object:
#         cls = Module
#         y: R.Tensor((), dtype="int64") = R.while_loop(cls.less, cls.next, x)
#         f: R.Callable((R.Tensor((), dtype="int64"),), R.Tensor((), dtype="int64"), True) = R.make_closure(cls.add, (y,))
#         return (y, f)
