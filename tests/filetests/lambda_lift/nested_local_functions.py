# A function within a local function captures variables of both enclosing functions; both are lifted.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2,), "float32"), w: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        @R.function
        def outer(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            @R.function
            def inner(z: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                return R.add(R.multiply(z, w), y)

            return inner(R.exp(y))

        return outer(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32"), w: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         cls = Module
#         gv4: R.Tensor((2,), dtype="float32") = cls.main_outer(x, w)
#         return gv4
#
#     @R.function(private=True)
#     def main_outer(y: R.Tensor((2,), dtype="float32"), w: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"num_captured": 1})
#         cls = Module
#         gv2: R.Tensor((2,), dtype="float32") = R.exp(y)
#         gv3: R.Tensor((2,), dtype="float32") = cls.main_outer_inner(gv2, w, y)
#         return gv3
#
#     @R.function(private=True)
#     def main_outer_inner(z: R.Tensor((2,), dtype="float32"), w: R.Tensor((2,), dtype="float32"), y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"num_captured": 2})
#         gv: R.Tensor((2,), dtype="float32") = R.multiply(z, w)
#         gv1: R.Tensor((2,), dtype="float32") = R.add(gv, y)
#         return gv1
