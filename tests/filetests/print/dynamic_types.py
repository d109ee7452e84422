# Types without a known rank, data type or size keep only what is known.
# test print

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(a: R.Tensor, b: R.Tensor(dtype="int8"), c: R.Tensor(ndim=3), d: R.Tensor(("n", 2)), s: R.Shape, t: R.Shape(ndim=2), u: R.Shape(["n", 4]), o: R.Object) -> R.Object:
        return (a, b, c, d, s, t, u, o)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(a: R.Tensor, b: R.Tensor(dtype="int8"), c: R.Tensor(ndim=3), d: R.Tensor(("n", 2)), s: R.Shape, t: R.Shape(ndim=2), u: R.Shape(["n", 4]), o: R.Object) -> R.Object:
#         n = T.int64()
#         return (a, b, c, d, s, t, u, o)
