# A reshaped tensor is its own value for the VM: freeing the original leaves the view alive.
# test opt --passes=KillAfterLastUse

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n * 2",), "float32"):
        n = T.int64()
        a = R.exp(x)
        b = R.reshape(a, R.shape([n * 2]))
        c = R.sin(b)
        return c

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n * 2",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         a: R.Tensor((n, 2), dtype="float32") = R.exp(x)
#         b: R.Tensor((n * 2,), dtype="float32") = R.reshape(a, R.shape([n * 2]))
#         _: R.Tuple = R.memory.kill_tensor(a)
#         c: R.Tensor((n * 2,), dtype="float32") = R.sin(b)
#         _1: R.Tuple = R.memory.kill_tensor(b)
#         return c
