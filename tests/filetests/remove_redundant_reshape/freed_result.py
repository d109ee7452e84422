# A reshape whose result is freed stays, since its operand lives on.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
        a = R.exp(x)
        b = R.reshape(a, R.shape([2, 2]))
        c = R.add(b, b)
        _ = R.memory.kill_tensor(b)
        d = R.add(a, c)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor((2, 2), dtype="float32")) -> R.Tensor((2, 2), dtype="float32"):
#         a: R.Tensor((2, 2), dtype="float32") = R.exp(x)
#         b: R.Tensor((2, 2), dtype="float32") = R.reshape(a, R.shape([2, 2]))
#         c: R.Tensor((2, 2), dtype="float32") = R.add(b, b)
#         _: R.Tuple = R.memory.kill_tensor(b)
#         d: R.Tensor((2, 2), dtype="float32") = R.add(a, c)
#         return d
