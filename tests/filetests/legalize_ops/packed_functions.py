# Operators whose result size depends on values, and operators with effects, become calls of packed functions.
# test opt --passes=LegalizeOps

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), ok: R.Tensor((), "bool")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            a = R.unique(x, return_counts=True)
            b = R.nonzero(x)
            R.output(a, b)
        R.print(b, R.shape([n]), format="{} of {}")
        R.assert_op(ok, x, format="x is {}")
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32"), ok: R.Tensor((), dtype="bool")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             a: R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Tensor(dtype="int64", ndim=1)) = R.call_pure_packed("vm.builtin.unique", x, R.prim_value(1), R.prim_value(0), R.prim_value(0), R.prim_value(1), R.tuple(), sinfo_args=(R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Tensor(dtype="int64", ndim=1)),))
#             b: R.Tensor(dtype="int64", ndim=2) = R.call_pure_packed("vm.builtin.nonzero", x, sinfo_args=(R.Tensor(dtype="int64", ndim=2),))
#             R.output(a, b)
#         _: R.Tuple = R.call_packed("vm.builtin.print", R.str("{} of {}"), b, R.shape([n]), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = R.call_packed("vm.builtin.assert_op", ok, R.str("x is {}"), x, sinfo_args=(R.Tuple,))
#         return (a, b)
