# A tensor that only one arm reads is freed after the branch; a tensor that an arm creates is freed in it.
# test opt --passes=KillAfterLastUse

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor((), "float32"):
        y = R.exp(x)
        if c:
            a = R.sin(y)
            z = R.sum(a)
        else:
            z = R.const(0.0, "float32")
        w = R.add(z, z)
        return w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor((), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         if c:
#             a: R.Tensor((n,), dtype="float32") = R.sin(y)
#             gv: R.Tensor((), dtype="float32") = R.sum(a)
#             _1: R.Tuple = R.memory.kill_tensor(a)
#             z: R.Tensor((), dtype="float32") = gv
#         else:
#             z: R.Tensor((), dtype="float32") = R.const(0.0, "float32")
#         _: R.Tuple = R.memory.kill_tensor(y)
#         w: R.Tensor((), dtype="float32") = R.add(z, z)
#         return w
