# The only caller passes an argument whose type proves what the private function would check, so it matches the size without
# checks.
# test opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite,LowerAllocTensor,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def inner(y: R.Tensor(("k", 2), "float32")) -> R.Shape(["k * 2"]):
        k = T.int64()
        return R.shape([k * 2])

    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Shape(ndim=1):
        cls = Module
        return cls.inner(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def inner(y: R.Tensor(("k", 2), dtype="float32")) -> R.Shape(ndim=1):
#         k = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
#         _: R.Tuple = R.call_packed("vm.builtin.match_shape", y, shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(0), R.prim_value(2), R.prim_value(0), R.str("inner: 'y'"), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = cls.shape_func_inner_0(shape_heap)
#         shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#         return shape
#
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Shape(ndim=1):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         null: R.Object = R.null_value()
#         _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(2), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = R.call_packed("vm.builtin.match_shape", x, null, R.prim_value(2), R.prim_value(2), R.prim_value(0), R.prim_value(0), R.prim_value(2), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         gv: R.Shape(ndim=1) = cls.inner(x)
#         return gv
#
#     @T.prim_func(private=True)
#     def shape_func_inner_0(H: T.Buffer((2,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[0]) * T.float64(2.0)) <= T.float64(9.2e18), H[0]), "ShapeError: inner: k * 2 does not fit 64 bits; k = {0}"):
#             pass
#         H[1] = H[0] * 2
