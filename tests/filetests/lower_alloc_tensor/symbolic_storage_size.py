# The size of a storage is the product of the dims and of the bytes of an element; a scalar takes one element.
# test opt --passes=LowerAllocTensor

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n", "m"), "float16")) -> R.Object:
        n = T.int64()
        m = T.int64()
        a: R.Tensor((n, m, 3), "float16") = R.builtin.alloc_tensor(R.shape([n, m, 3]), R.dtype("float16"), R.prim_value(0))
        b: R.Tensor((), "float64") = R.builtin.alloc_tensor(R.shape([]), R.dtype("float64"), R.prim_value(0))
        c: R.Tensor((n + 1,), "bool") = R.builtin.alloc_tensor(R.shape([n + 1]), R.dtype("bool"), R.prim_value(0))
        return R.shape([n])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n", "m"), dtype="float16")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         storage: R.Object = R.memory.alloc_storage(R.shape([m * n * 6]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((n, m, 3), dtype="float16") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, m, 3]), R.dtype("float16"))
#         storage1: R.Object = R.memory.alloc_storage(R.shape([8]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((), dtype="float64") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([]), R.dtype("float64"))
#         storage2: R.Object = R.memory.alloc_storage(R.shape([n + 1]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         c: R.Tensor((n + 1,), dtype="bool") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([n + 1]), R.dtype("bool"))
#         return R.shape([n])
