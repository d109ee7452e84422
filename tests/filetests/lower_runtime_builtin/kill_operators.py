# Freeing a tensor and freeing a storage are the same operation of the VM.
# test opt --passes=LowerRuntimeBuiltin

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Shape([4]):
        s: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        a: R.Tensor((4,), "float32") = R.memory.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
        _: R.Tuple = R.memory.kill_storage(s)
        _1: R.Tuple = R.memory.kill_tensor(a)
        return R.shape([4])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Shape([4]):
#         s: R.Object = R.vm.alloc_storage(R.shape([16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         a: R.Tensor((4,), dtype="float32") = R.vm.alloc_tensor(s, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#         _: R.Tuple = R.vm.kill_object(s)
#         _1: R.Tuple = R.vm.kill_object(a)
#         return R.shape([4])
