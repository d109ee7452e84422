# Two calls that take the same size share the integer that is read from the shape heap.
# test opt --passes=VMShapeLower
# no-run: the packed functions are not registered

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        a = R.call_packed("f", R.prim_value(n + 1), sinfo_args=R.Object)
        b = R.call_packed("g", a, R.prim_value(n + 1), sinfo_args=R.Object)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         R.func_attr({"vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
#         _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _2: R.Tuple = cls.shape_func_main_0(shape_heap)
#         size: R.Prim("int64") = R.call_packed("vm.builtin.make_prim_value", shape_heap, R.prim_value(1), R.prim_value(1), sinfo_args=(R.Prim("int64"),))
#         a: R.Object = R.call_packed("f", size, sinfo_args=(R.Object,))
#         b: R.Object = R.call_packed("g", a, size, sinfo_args=(R.Object,))
#         return b
#
#     @T.prim_func(private=True)
#     def shape_func_main_0(H: T.Buffer((2,), "int64")):
#         with T.Assert(T.explain(T.abs(T.float64(1.0) + T.Cast("float64", H[0])) <= T.float64(9.2e18), H[0]), "ShapeError: main: n + 1 does not fit 64 bits; n = {0}"):
#             pass
#         H[1] = H[0] + 1
