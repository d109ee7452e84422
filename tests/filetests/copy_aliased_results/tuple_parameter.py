# A view of a field of a tuple parameter is a view of the caller's memory as well.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(t: R.Tuple(R.Tensor((2, 3), "float32"), R.Tensor((), "float32"))) -> R.Tensor((6,), "float32"):
        a = t[0]
        b = R.reshape(a, R.shape([6]))
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(t: R.Tuple(R.Tensor((2, 3), dtype="float32"), R.Tensor((), dtype="float32"))) -> R.Tensor((6,), dtype="float32"):
#         a: R.Tensor((2, 3), dtype="float32") = t[0]
#         b: R.Tensor((6,), dtype="float32") = R.reshape(a, R.shape([6]))
#         copy: R.Tensor((6,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", b, sinfo_args=(R.Tensor((6,), dtype="float32"),))
#         return copy
