# The private function copies its result, a view of its parameter, so its caller returns a value of its own.
# test opt --passes=CopyAliasedResults

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def flat(y: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        z = R.reshape(y, R.shape([6]))
        return z

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((6,), "float32"):
        cls = Module
        a = cls.flat(x)
        return a

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def flat(y: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((6,), dtype="float32"):
#         z: R.Tensor((6,), dtype="float32") = R.reshape(y, R.shape([6]))
#         copy: R.Tensor((6,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", z, sinfo_args=(R.Tensor((6,), dtype="float32"),))
#         return copy
#
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((6,), dtype="float32"):
#         cls = Module
#         a: R.Tensor((6,), dtype="float32") = cls.flat(x)
#         return a
