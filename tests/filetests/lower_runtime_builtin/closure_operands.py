# Creating a closure and calling it become VM operators; tuples of captured values and arguments are expanded.
# test opt --passes=LowerRuntimeBuiltin

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The captured values and arguments of closures are variables: an empty tuple, a tuple parameter, a tuple that contains a tuple.
    @R.function
    def join(a: R.Tensor((), "float32"), t: R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32")), b: R.Tensor((), "float32")) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32")):
        x = t[0]
        y = t[1]
        return (a, x, y, b)

    @R.function
    def main(x: R.Tensor((), "float32"), y: R.Tensor((), "float32"), z: R.Tuple(R.Tensor((), "float32"))) -> R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32")):
        cls = Module
        none = ()
        pair = (x, y)
        captured = (pair, y)
        f: R.Object = R.make_closure(cls.join, captured)
        g: R.Object = R.make_closure(f, none)
        r = R.invoke_pure_closure(g, z, sinfo_args=R.Tuple(R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32"), R.Tensor((), "float32")))
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def join(a: R.Tensor((), dtype="float32"), t: R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")), b: R.Tensor((), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")):
#         R.func_attr({"relax.force_pure": True})
#         x: R.Tensor((), dtype="float32") = t[0]
#         y: R.Tensor((), dtype="float32") = t[1]
#         return (a, x, y, b)
#
#     @R.function
#     def main(x: R.Tensor((), dtype="float32"), y: R.Tensor((), dtype="float32"), z: R.Tuple(R.Tensor((), dtype="float32"))) -> R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")):
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         none: R.Tuple = R.tuple()
#         pair: R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")) = (x, y)
#         captured: R.Tuple(R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")), R.Tensor((), dtype="float32")) = (pair, y)
#         operand: R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")) = captured[0]
#         operand1: R.Tensor((), dtype="float32") = captured[1]
#         f: R.Object = R.call_packed("vm.builtin.make_closure", cls.join, operand, operand1, sinfo_args=(R.Callable((R.Tensor((), dtype="float32"),), R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")), True),))
#         g: R.Object = R.call_packed("vm.builtin.make_closure", f, sinfo_args=(R.Object,))
#         operand2: R.Tensor((), dtype="float32") = z[0]
#         r: R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")) = R.call_packed("vm.builtin.invoke_pure_closure", g, operand2, sinfo_args=(R.Tuple(R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32"), R.Tensor((), dtype="float32")),))
#         return r
