# A local function in a branch captures an output of a dataflow block; the name for the lifted function is taken.
# test opt --passes=LambdaLift,LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A local function inside a branch; one that captures the output of a dataflow block; one whose lifted name is taken.
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            lv = R.exp(x)
            gv = R.add(lv, x)
            R.output(gv)
        if c:
            @R.function
            def inner(y: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
                return R.subtract(y, gv)

            r = inner(x)
        else:
            r = R.negative(gv)
        return r

    @R.function
    def main_inner(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.exp(x)
#             gv: R.Tensor((n,), dtype="float32") = R.add(lv, x)
#             R.output(gv)
#         if c:
#             gv2: R.Tensor((n,), dtype="float32") = cls.main_inner_1(x, gv)
#             r: R.Tensor((n,), dtype="float32") = gv2
#         else:
#             gv3: R.Tensor((n,), dtype="float32") = R.negative(gv)
#             r: R.Tensor((n,), dtype="float32") = gv3
#         return r
#
#     @R.function
#     def main_inner(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         gv: R.Tensor((4,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function(private=True)
#     def main_inner_1(y: R.Tensor(("n",), dtype="float32"), gv: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 1})
#         gv1: R.Tensor((n,), dtype="float32") = R.subtract(y, gv)
#         return gv1
