# Local functions that are passed, selected by a branch or aliased become closures, if they capture variables.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def apply(f: R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32"), True), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return f(x)

    # Functions as values: passed as an argument, selected by a branch, aliased, defined inside another local function.
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module

        @R.function
        def plain(z: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.negative(z)

        @R.function
        def scale(z: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            return R.multiply(z, y)

        a = cls.apply(plain, x)
        other = scale
        b = cls.apply(other, a)
        if c:
            f = plain
        else:
            f = scale
        d = f(b)

        @R.function
        def nested(z: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
            @R.function
            def inner(w: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
                return R.add(R.add(w, z), x)

            e = cls.apply(scale, z)
            return cls.apply(inner, e)

        return (b, d, nested(d))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def apply(f: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True), x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         gv: R.Tensor((4,), dtype="float32") = f(x)
#         return gv
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         scale: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = R.make_closure(cls.main_scale, (y,))
#         a: R.Tensor((4,), dtype="float32") = cls.apply(cls.main_plain, x)
#         b: R.Tensor((4,), dtype="float32") = cls.apply(scale, a)
#         if c:
#             f: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = cls.main_plain
#         else:
#             f: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = scale
#         d: R.Tensor((4,), dtype="float32") = f(b)
#         gv5: R.Tensor((4,), dtype="float32") = cls.main_nested(d, x, y)
#         return (b, d, gv5)
#
#     @R.function(private=True)
#     def main_plain(z: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         gv: R.Tensor((4,), dtype="float32") = R.negative(z)
#         return gv
#
#     @R.function(private=True)
#     def main_scale(z1: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_captured": 1})
#         gv1: R.Tensor((4,), dtype="float32") = R.multiply(z1, y)
#         return gv1
#
#     @R.function(private=True)
#     def main_nested(z2: R.Tensor((4,), dtype="float32"), x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_captured": 2})
#         cls = Module
#         inner: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = R.make_closure(cls.main_nested_inner, (z2, x))
#         scale1: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = R.make_closure(cls.main_scale, (y,))
#         e: R.Tensor((4,), dtype="float32") = cls.apply(scale1, z2)
#         gv4: R.Tensor((4,), dtype="float32") = cls.apply(inner, e)
#         return gv4
#
#     @R.function(private=True)
#     def main_nested_inner(w: R.Tensor((4,), dtype="float32"), z2: R.Tensor((4,), dtype="float32"), x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_captured": 2})
#         gv2: R.Tensor((4,), dtype="float32") = R.add(w, z2)
#         gv3: R.Tensor((4,), dtype="float32") = R.add(gv2, x)
#         return gv3
