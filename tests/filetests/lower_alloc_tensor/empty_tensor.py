# A tensor without elements gets a storage of 0 bytes.
# test opt --passes=LowerAllocTensor

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((0, 4), "float32")) -> R.Tensor((0, 4), "float32"):
        a: R.Tensor((0, 4), "float32") = R.builtin.alloc_tensor(R.shape([0, 4]), R.dtype("float32"), R.prim_value(0))
        return a

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor((0, 4), dtype="float32")) -> R.Tensor((0, 4), dtype="float32"):
#         storage: R.Object = R.memory.alloc_storage(R.shape([0]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((0, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([0, 4]), R.dtype("float32"))
#         return a
