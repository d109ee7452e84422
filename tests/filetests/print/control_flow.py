# A branch, calls of functions of the module, a local function, and a packed call.
# test print
# no-compile: the program calls functions that are not registered: test.show

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def helper(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module

        @R.function
        def inner(y: R.Tensor(("k", n), "float32")) -> R.Tensor(("k", n), "float32"):
            k = T.int64()
            return R.nn.relu(y)

        if c:
            y = cls.helper(x)
            z = R.add(y, x)
        else:
            z = R.negative(x)
        w = inner(R.reshape(z, R.shape([1, n])))
        _ = R.call_packed("test.show", w, sinfo_args=(R.Tuple,))
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def helper(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n,), dtype="float32") = R.exp(x)
#         return gv
#
#     @R.function(pure=False)
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         @R.function
#         def inner(y: R.Tensor(("k", n), dtype="float32")) -> R.Tensor(("k", n), dtype="float32"):
#             k = T.int64()
#             gv: R.Tensor((k, n), dtype="float32") = R.nn.relu(y)
#             return gv
#         if c:
#             y1: R.Tensor((n,), dtype="float32") = cls.helper(x)
#             gv1: R.Tensor((n,), dtype="float32") = R.add(y1, x)
#             z: R.Tensor((n,), dtype="float32") = gv1
#         else:
#             gv2: R.Tensor((n,), dtype="float32") = R.negative(x)
#             z: R.Tensor((n,), dtype="float32") = gv2
#         gv3: R.Tensor((1, n), dtype="float32") = R.reshape(z, R.shape([1, n]))
#         w: R.Tensor((1, n), dtype="float32") = inner(gv3)
#         _: R.Tuple = R.call_packed("test.show", w, sinfo_args=(R.Tuple,))
#         return z
