# The shape of a tensor and the shape in a tensor are builtins of the VM. A reshape to an unknown size is compiled at run time.
# test opt --passes=LowerRuntimeBuiltin

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32"), i: R.Tensor((2,), "int64")) -> R.Object:
        a = R.shape_of(x)
        b = R.tensor_to_shape(i)
        c = R.reshape(x, R.shape([-1]))
        return (a, b, c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(dtype="float32", ndim=2), i: R.Tensor((2,), dtype="int64")) -> R.Object:
#         R.func_attr({"relax.force_pure": True})
#         a: R.Shape(ndim=2) = R.call_packed("vm.builtin.shape_of", x, sinfo_args=(R.Shape(ndim=2),))
#         b: R.Shape(ndim=2) = R.call_packed("vm.builtin.tensor_to_shape", i, sinfo_args=(R.Shape(ndim=2),))
#         c: R.Tensor(dtype="float32", ndim=1) = R.call_packed("pliant.call_operator", R.str("relax.reshape"), R.str("R.reshape(a0, R.shape([-1]))"), x, sinfo_args=(R.Tensor(dtype="float32", ndim=1),))
#         return (a, b, c)
