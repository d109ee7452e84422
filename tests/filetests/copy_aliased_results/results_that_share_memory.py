# With the attribute `fresh_results`, a value that is returned twice, a view of another result and a constant are copied.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def twice(x: R.Tensor(("n", 3), "float32")) -> R.Tuple(R.Tensor(("n", 3), "float32"), R.Tensor(("n", 3), "float32")):
        R.func_attr({"fresh_results": True})
        y = R.exp(x)
        z = y
        pair = (y, z)
        return pair

    @R.function
    def view(x: R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((6,), "float32")):
        R.func_attr({"fresh_results": True})
        y = R.exp(x)
        z = R.reshape(y, R.shape([6]))
        return (y, z)

    @R.function
    def constant(x: R.Tensor((2,), "float32")) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((2,), "float32")):
        R.func_attr({"fresh_results": True})
        y = R.exp(x)
        return (y, R.const([1.0, 2.0], "float32"))

    @R.function
    def branch(
        c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")
    ) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        R.func_attr({"fresh_results": True})
        y = R.exp(x)
        if c:
            z = y
        else:
            w = R.sin(x)
            z = w
        return (y, z)

    @R.function
    def shared(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        y = R.exp(x)
        return (y, y)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def twice(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tuple(R.Tensor(("n", 3), dtype="float32"), R.Tensor(("n", 3), dtype="float32")):
#         n = T.int64()
#         R.func_attr({"fresh_results": True})
#         y: R.Tensor((n, 3), dtype="float32") = R.exp(x)
#         z: R.Tensor((n, 3), dtype="float32") = y
#         pair: R.Tuple(R.Tensor((n, 3), dtype="float32"), R.Tensor((n, 3), dtype="float32")) = (y, z)
#         copy: R.Tensor((n, 3), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", z, sinfo_args=(R.Tensor((n, 3), dtype="float32"),))
#         return (y, copy)
#
#     @R.function
#     def view(x: R.Tensor((2, 3), dtype="float32")) -> R.Tuple(R.Tensor((2, 3), dtype="float32"), R.Tensor((6,), dtype="float32")):
#         R.func_attr({"fresh_results": True})
#         y: R.Tensor((2, 3), dtype="float32") = R.exp(x)
#         z: R.Tensor((6,), dtype="float32") = R.reshape(y, R.shape([6]))
#         copy: R.Tensor((6,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", z, sinfo_args=(R.Tensor((6,), dtype="float32"),))
#         return (y, copy)
#
#     @R.function
#     def constant(x: R.Tensor((2,), dtype="float32")) -> R.Tuple(R.Tensor((2,), dtype="float32"), R.Tensor((2,), dtype="float32")):
#         R.func_attr({"fresh_results": True})
#         y: R.Tensor((2,), dtype="float32") = R.exp(x)
#         copy: R.Tensor((2,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", R.const([1.0, 2.0], "float32"), sinfo_args=(R.Tensor((2,), dtype="float32"),))
#         return (y, copy)
#
#     @R.function
#     def branch(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         R.func_attr({"fresh_results": True})
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         if c:
#             z: R.Tensor((n,), dtype="float32") = y
#         else:
#             w: R.Tensor((n,), dtype="float32") = R.sin(x)
#             z: R.Tensor((n,), dtype="float32") = w
#         copy: R.Tensor((n,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", z, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         return (y, copy)
#
#     @R.function
#     def shared(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         return (y, y)
