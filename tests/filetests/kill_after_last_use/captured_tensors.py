# Values that a local function captures stay alive until the last use of the function.
# test opt --passes=KillAfterLastUse

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def called(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.exp(x)

        @R.function
        def g(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(a, y)

        z = R.multiply(y, y)
        return g(z)

    @R.function
    def through_another(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.exp(x)
        c = y

        @R.function
        def g(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(a, c)

        @R.function
        def h(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            b = g(a)
            return R.multiply(b, b)

        z = R.multiply(y, y)
        w = h(z)
        v = R.add(w, x)
        return v

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def called(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         @R.function
#         def g(a: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
#             gv: R.Tensor((n,), dtype="float32") = R.add(a, y)
#             return gv
#         z: R.Tensor((n,), dtype="float32") = R.multiply(y, y)
#         gv1: R.Tensor((n,), dtype="float32") = g(z)
#         _: R.Tuple = R.memory.kill_tensor(y)
#         _1: R.Tuple = R.memory.kill_tensor(z)
#         return gv1
#
#     @R.function
#     def through_another(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         c: R.Tensor((n,), dtype="float32") = y
#         @R.function
#         def g(a: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
#             gv: R.Tensor((n,), dtype="float32") = R.add(a, c)
#             return gv
#         @R.function
#         def h(a1: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
#             b: R.Tensor((n,), dtype="float32") = g(a1)
#             gv1: R.Tensor((n,), dtype="float32") = R.multiply(b, b)
#             _3: R.Tuple = R.memory.kill_tensor(b)
#             return gv1
#         z: R.Tensor((n,), dtype="float32") = R.multiply(y, y)
#         w: R.Tensor((n,), dtype="float32") = h(z)
#         _: R.Tuple = R.memory.kill_tensor(y)
#         _1: R.Tuple = R.memory.kill_tensor(z)
#         v: R.Tensor((n,), dtype="float32") = R.add(w, x)
#         _2: R.Tuple = R.memory.kill_tensor(w)
#         return v
