# The function called through a parameter loses its purity, and so does the parameter's type.
# test opt --passes=RemovePurityChecking

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The function called through the parameter loses its purity, and so does the parameter's type.
    @R.function(private=True)
    def apply(f: R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32"), True), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        y = f(x)
        return f(y)

    @R.function
    def double(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.add(x, x)

    @R.function(private=True)
    def choose(fs: R.Tuple(R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32"), True), R.Tensor(("n",), "float32"))) -> R.Callable((R.Tensor(("n",), "float32"),), R.Tensor(("n",), "float32"), True):
        return fs[0]

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module

        @R.function
        def negative(y: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            return R.negative(y)

        f = cls.choose((cls.double, x))
        a = cls.apply(f, x)
        return cls.apply(negative, a)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def apply(f: R.Callable((R.Tensor(("n",), dtype="float32"),), R.Tensor(("n",), dtype="float32"), True), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         y: R.Tensor((n,), dtype="float32") = f(x)
#         gv: R.Tensor((n,), dtype="float32") = f(y)
#         return gv
#
#     @R.function
#     def double(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         gv: R.Tensor((n,), dtype="float32") = R.add(x, x)
#         return gv
#
#     @R.function(private=True)
#     def choose(fs: R.Tuple(R.Callable((R.Tensor(("n",), dtype="float32"),), R.Tensor(("n",), dtype="float32"), True), R.Tensor(("n",), dtype="float32"))) -> R.Callable((R.Tensor(("n",), dtype="float32"),), R.Tensor(("n",), dtype="float32"), True):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         gv: R.Callable((R.Tensor((n,), dtype="float32"),), R.Tensor((n,), dtype="float32"), True) = fs[0]
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         @R.function
#         def negative(y: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#             k = T.int64()
#             gv: R.Tensor((k,), dtype="float32") = R.negative(y)
#             return gv
#         f: R.Callable((R.Tensor((n,), dtype="float32"),), R.Tensor((n,), dtype="float32"), True) = cls.choose((cls.double, x))
#         a: R.Tensor((n,), dtype="float32") = cls.apply(f, x)
#         gv1: R.Tensor((n,), dtype="float32") = cls.apply(negative, a)
#         return gv1
