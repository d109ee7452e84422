# A view of a view of a parameter is copied; a view of a computed tensor is a new value already.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tuple(R.Tensor((3, 2), "float32"), R.Tensor((6,), "float32")):
        a = R.reshape(x, R.shape([6]))
        b = R.reshape(a, R.shape([3, 2]))
        c = R.exp(x)
        d = R.reshape(c, R.shape([6]))
        return (b, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tuple(R.Tensor((3, 2), dtype="float32"), R.Tensor((6,), dtype="float32")):
#         a: R.Tensor((6,), dtype="float32") = R.reshape(x, R.shape([6]))
#         b: R.Tensor((3, 2), dtype="float32") = R.reshape(a, R.shape([3, 2]))
#         c: R.Tensor((2, 3), dtype="float32") = R.exp(x)
#         d: R.Tensor((6,), dtype="float32") = R.reshape(c, R.shape([6]))
#         copy: R.Tensor((3, 2), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", b, sinfo_args=(R.Tensor((3, 2), dtype="float32"),))
#         return (copy, d)
