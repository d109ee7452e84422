# Results that are views of a parameter are copied; new values, and parameters returned directly, are not.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def view(x: R.Tensor(("n", 3), "float32")) -> R.Object:
        n = T.int64()
        with R.dataflow():
            y = R.reshape(x, R.shape([n * 3]))
            z = R.exp(y)
            R.output(y, z)
        return (y, (z, y), x)

    @R.function
    def fresh(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n * 3",), "float32"):
        n = T.int64()
        y = R.exp(x)
        z = R.reshape(y, R.shape([n * 3]))
        return z

    @R.function
    def itself(x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n", 3), "float32"):
        y = x
        return y

    @R.function
    def branches(c: R.Tensor((), "bool"), x: R.Tensor(("n", 3), "float32")) -> R.Tensor(("n * 3",), "float32"):
        n = T.int64()
        if c:
            y = R.reshape(x, R.shape([n * 3]))
            r = y
        else:
            z = R.reshape(R.exp(x), R.shape([n * 3]))
            r = z
        return r

    @R.function
    def pair(x: R.Tensor(("n", 3), "float32")) -> R.Object:
        n = T.int64()
        y = R.reshape(x, R.shape([n * 3]))
        t = (x, y)
        u = t[1]
        v = R.reshape(u, R.shape([3, n]))
        return (t, v)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def view(x: R.Tensor(("n", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         with R.dataflow():
#             y: R.Tensor((n * 3,), dtype="float32") = R.reshape(x, R.shape([n * 3]))
#             z: R.Tensor((n * 3,), dtype="float32") = R.exp(y)
#             R.output(y, z)
#         copy: R.Tensor((n * 3,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", y, sinfo_args=(R.Tensor((n * 3,), dtype="float32"),))
#         return (copy, (z, copy), x)
#
#     @R.function
#     def fresh(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tensor(("n * 3",), dtype="float32"):
#         n = T.int64()
#         y: R.Tensor((n, 3), dtype="float32") = R.exp(x)
#         z: R.Tensor((n * 3,), dtype="float32") = R.reshape(y, R.shape([n * 3]))
#         return z
#
#     @R.function
#     def itself(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tensor(("n", 3), dtype="float32"):
#         n = T.int64()
#         y: R.Tensor((n, 3), dtype="float32") = x
#         return y
#
#     @R.function
#     def branches(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n", 3), dtype="float32")) -> R.Tensor(("n * 3",), dtype="float32"):
#         n = T.int64()
#         if c:
#             y: R.Tensor((n * 3,), dtype="float32") = R.reshape(x, R.shape([n * 3]))
#             r: R.Tensor((n * 3,), dtype="float32") = y
#         else:
#             gv: R.Tensor((n, 3), dtype="float32") = R.exp(x)
#             z: R.Tensor((n * 3,), dtype="float32") = R.reshape(gv, R.shape([n * 3]))
#             r: R.Tensor((n * 3,), dtype="float32") = z
#         copy: R.Tensor((n * 3,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", r, sinfo_args=(R.Tensor((n * 3,), dtype="float32"),))
#         return copy
#
#     @R.function
#     def pair(x: R.Tensor(("n", 3), dtype="float32")) -> R.Object:
#         n = T.int64()
#         y: R.Tensor((n * 3,), dtype="float32") = R.reshape(x, R.shape([n * 3]))
#         t: R.Tuple(R.Tensor((n, 3), dtype="float32"), R.Tensor((n * 3,), dtype="float32")) = (x, y)
#         u: R.Tensor((n * 3,), dtype="float32") = t[1]
#         v: R.Tensor((3, n), dtype="float32") = R.reshape(u, R.shape([3, n]))
#         copy: R.Tensor((n * 3,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", y, sinfo_args=(R.Tensor((n * 3,), dtype="float32"),))
#         copy1: R.Tensor((3, n), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", v, sinfo_args=(R.Tensor((3, n), dtype="float32"),))
#         return ((x, copy), copy1)
