# `main` still has operators. Lowering only `inner` would remove the sizes from its type, which `main` relies on.
# test opt --passes=VMShapeLower
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y: R.Tensor((n,), "float32") = cls.inner(x)
        z = R.exp(y)
        return z

    @R.function(private=True)
    def inner(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x

    @R.function
    def alone(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         y: R.Tensor((n,), dtype="float32") = cls.inner(x)
#         z: R.Tensor((n,), dtype="float32") = R.exp(y)
#         return z
#
#     @R.function(private=True)
#     def inner(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         return x
#
#     @R.function
#     def alone(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("alone: 'x'"), sinfo_args=(R.Tuple,))
#         return x
