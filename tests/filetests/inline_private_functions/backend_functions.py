# Functions that a backend compiles keep their calls.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def composite(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        R.func_attr({"Composite": "mine.exp"})
        return R.exp(a)

    @R.function(private=True)
    def plain(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        return R.sin(a)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        y = cls.composite(x)
        return cls.plain(y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def composite(a: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#         k = T.int64()
#         R.func_attr({"Composite": "mine.exp"})
#         gv: R.Tensor((k,), dtype="float32") = R.exp(a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         y: R.Tensor((n,), dtype="float32") = cls.composite(x)
#         gv: R.Tensor((n,), dtype="float32") = R.sin(y)
#         return gv
