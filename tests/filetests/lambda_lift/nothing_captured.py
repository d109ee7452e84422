# A local function without captures needs no closure: its global name is the value, in calls and in the result.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Object):
        @R.function
        def twice(y: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            return R.add(y, y)

        z = twice(x)
        return (z, twice)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(dtype="float32", ndim=1), R.Object):
#         n = T.int64()
#         cls = Module
#         z: R.Tensor((n,), dtype="float32") = cls.main_twice(x)
#         return (z, cls.main_twice)
#
#     @R.function(private=True)
#     def main_twice(y: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.add(y, y)
#         return gv
