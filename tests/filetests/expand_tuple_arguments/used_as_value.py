# A function used as a value keeps its tuple parameter, and so does a public function: callers elsewhere pass one tuple.
# test opt --passes=ExpandTupleArguments

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def value(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
        return R.add(t[0], t[1])

    @R.function
    def public(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32"))) -> R.Tensor((2,), "float32"):
        return R.subtract(t[0], t[1])

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Object:
        cls = Module
        a = cls.value((x, x))
        b = cls.public((x, a))
        f = cls.value
        return (b, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def value(t: R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32"))) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = t[0]
#         gv1: R.Tensor((2,), dtype="float32") = t[1]
#         gv2: R.Tensor((2,), dtype="float32") = R.add(gv, gv1)
#         return gv2
#
#     @R.function
#     def public(t: R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32"))) -> R.Tensor((2,), dtype="float32"):
#         gv: R.Tensor((2,), dtype="float32") = t[0]
#         gv1: R.Tensor((2,), dtype="float32") = t[1]
#         gv2: R.Tensor((2,), dtype="float32") = R.subtract(gv, gv1)
#         return gv2
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Object:
#         cls = Module
#         a: R.Tensor((2,), dtype="float32") = cls.value((x, x))
#         b: R.Tensor((2,), dtype="float32") = cls.public((x, a))
#         f: R.Callable((R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")),), R.Tensor((2,), dtype="float32"), True) = cls.value
#         return (b, f)
