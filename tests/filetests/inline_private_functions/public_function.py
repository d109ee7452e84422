# A public function is not inlined, although its only call is here: callers outside of the module may call it, too.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def square(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        return R.multiply(a, a)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        return cls.square(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def square(a: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.multiply(a, a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         gv: R.Tensor((n,), dtype="float32") = cls.square(x)
#         return gv
