# With the attribute `fresh_results`, a parameter that is returned is copied too.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def itself(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        R.func_attr({"fresh_results": True})
        y = x
        return y

    @R.function
    def branches(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Object:
        R.func_attr({"fresh_results": True})
        if c:
            r = x
        else:
            z = R.exp(x)
            r = z
        return (r, x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def itself(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"fresh_results": True})
#         y: R.Tensor((n, 3), dtype="float32") = x
#         copy: R.Tensor((n, 3), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", y, sinfo_args=(R.Tensor((n, 3), dtype="float32"),))
#         return copy
#
#     @R.function
#     def branches(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         R.func_attr({"fresh_results": True})
#         if c:
#             r: R.Tensor((n,), dtype="float32") = x
#         else:
#             z: R.Tensor((n,), dtype="float32") = R.exp(x)
#             r: R.Tensor((n,), dtype="float32") = z
#         copy: R.Tensor((n,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", r, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         copy1: R.Tensor((n,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         return (copy, copy1)
