# A match_cast defines symbols for computed shapes; repeated symbols are checked.
# test opt --passes=LegalizeOps,ToNonDataflow,RemovePurityChecking,CallTIRRewrite,LowerAllocTensor,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), y: R.Tensor(dtype="float32", ndim=2)) -> R.Object:
        n, m, k = T.int64(), T.int64(), T.int64()
        z = R.match_cast(y, R.Tensor((k, k), "float32"))
        s = R.shape([n * m + k, T.max(n, k)])
        w = R.reshape(x, R.shape([m * n]))
        return (w, z, s)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), y: R.Tensor(dtype="float32", ndim=2)) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((6,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(6),), sinfo_args=(R.Tensor((6,), dtype="int64"),))
#         _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(2), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", y, R.prim_value(2), R.dtype("float32"), R.str("main: 'y'"), sinfo_args=(R.Tuple,))
#         _2: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(0), R.prim_value(1), R.prim_value(1), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _3: R.Tuple = cls.shape_func_main_0(shape_heap)
#         _4: R.Tuple = R.call_packed("vm.builtin.match_shape", y, shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(3), R.prim_value(3), R.prim_value(3), R.str("main: match_cast of 'y'\n\nk\tmatch_cast of 'y' dim 0"), sinfo_args=(R.Tuple,))
#         z: R.Tensor(dtype="float32", ndim=2) = y
#         _5: R.Tuple = cls.shape_func_main_1(shape_heap)
#         shape: R.Shape(ndim=2) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(4), R.prim_value(1), R.prim_value(5), sinfo_args=(R.Shape(ndim=2),))
#         s: R.Shape(ndim=2) = shape
#         shape1: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(2), sinfo_args=(R.Shape(ndim=1),))
#         w: R.Tensor(dtype="float32", ndim=1) = R.call_packed("vm.builtin.reshape", x, shape1, R.str("(m * n,)"), sinfo_args=(R.Tensor(dtype="float32", ndim=1),))
#         return (w, z, s)
#
#     @T.prim_func(private=True)
#     def shape_func_main_0(H: T.Buffer((6,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[0]) * T.Cast("float64", H[1])) <= T.float64(9.2e18), H[0], H[1]), "ShapeError: main: m * n does not fit 64 bits; n = {0}, m = {1}"):
#             pass
#         H[2] = H[0] * H[1]
#
#     @T.prim_func(private=True)
#     def shape_func_main_1(H: T.Buffer((6,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[3]) + T.Cast("float64", H[2])) <= T.float64(9.2e18), H[3], H[0], H[1]), "ShapeError: main: m * n + k does not fit 64 bits; k = {0}, n = {1}, m = {2}"):
#             pass
#         H[4] = H[3] + H[2]
#         H[5] = T.max(H[0], H[3])
