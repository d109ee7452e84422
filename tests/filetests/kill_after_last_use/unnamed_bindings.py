# Bindings without a name get one when the pass refers to them.
# test opt --passes=KillAfterLastUse
@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        _: R.Tensor((n,), "float32") = cls.checked(x)
        y = R.exp(x)
        _1: R.Tensor((n,), "float32") = cls.checked(y)
        return y

    @R.function(pure=False, private=True)
    def checked(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        _ = R.assert_op(R.const(True))
        y = R.exp(x)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         lv: R.Tensor((n,), dtype="float32") = cls.checked(x)
#         _2: R.Tuple = R.memory.kill_tensor(lv)
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         _1: R.Tensor((n,), dtype="float32") = cls.checked(y)
#         _3: R.Tuple = R.memory.kill_tensor(_1)
#         return y
#
#     @R.function(private=True, pure=False)
#     def checked(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         _: R.Tuple = R.assert_op(R.const(True, "bool"))
#         y: R.Tensor((n,), dtype="float32") = R.exp(x)
#         return y
