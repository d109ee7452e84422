# A returned tensor is not freed, and neither is one that a returned tuple holds, or a parameter.
# test opt --passes=KillAfterLastUse

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        a = R.exp(x)
        b = R.sin(a)
        t = (a, b)
        c = R.cos(b)
        d = R.sum(c)
        return (t, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         b: R.Tensor((n,), dtype="float32") = R.sin(a)
#         t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (a, b)
#         c: R.Tensor((n,), dtype="float32") = R.cos(b)
#         d: R.Tensor((), dtype="float32") = R.sum(c)
#         _: R.Tuple = R.memory.kill_tensor(c)
#         return (t, d)
