# A reshape whose operand is freed later stays, since its result lives on.
# test opt --passes=RemoveRedundantReshape

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 2), "float32")) -> R.Tensor((2, 2), "float32"):
        a = R.exp(x)
        b = R.reshape(a, R.shape([2, 2]))
        c = R.permute_dims(a, axes=[0, 1])
        d = R.add(b, c)
        _ = R.memory.kill_tensor(a)
        e = R.add(b, d)
        return e

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor((2, 2), dtype="float32")) -> R.Tensor((2, 2), dtype="float32"):
#         a: R.Tensor((2, 2), dtype="float32") = R.exp(x)
#         b: R.Tensor((2, 2), dtype="float32") = R.reshape(a, R.shape([2, 2]))
#         c: R.Tensor((2, 2), dtype="float32") = R.permute_dims(a, axes=[0, 1])
#         d: R.Tensor((2, 2), dtype="float32") = R.add(b, c)
#         _: R.Tuple = R.memory.kill_tensor(a)
#         e: R.Tensor((2, 2), dtype="float32") = R.add(b, d)
#         return e
