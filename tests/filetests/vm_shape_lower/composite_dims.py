# No parameter has the dim `n`: it is solved from `n * 2 + 1`, and `n + 1` is then computed and compared with the dim of `y`.
# test opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite,LowerAllocTensor,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n * 2 + 1",), "float32"), y: R.Tensor(("n + 1",), "float32")) -> R.Shape(["n"]):
        n = T.int64()
        return R.shape([n])

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n * 2 + 1",), dtype="float32"), y: R.Tensor(("n + 1",), dtype="float32")) -> R.Shape(ndim=1):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((4,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(4),), sinfo_args=(R.Tensor((4,), dtype="int64"),))
#         _: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _1: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", y, R.prim_value(1), R.dtype("float32"), R.str("main: 'y'"), sinfo_args=(R.Tuple,))
#         _2: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _3: R.Tuple = cls.shape_func_main_0(shape_heap)
#         _4: R.Tuple = cls.shape_func_main_1(shape_heap)
#         _5: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(3), R.prim_value(2), R.str("main: 'x'\nn * 2 + 1\tthis dim itself: no value of n matches"), sinfo_args=(R.Tuple,))
#         _6: R.Tuple = R.call_packed("vm.builtin.match_shape", y, shape_heap, R.prim_value(1), R.prim_value(3), R.prim_value(3), R.str("main: 'y'\nn + 1\t'x' dim 0"), sinfo_args=(R.Tuple,))
#         shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#         return shape
#
#     @T.prim_func(private=True)
#     def shape_func_main_0(H: T.Buffer((4,), "int64")):
#         with T.Assert(T.explain(T.abs(T.float64(1.0) + T.Cast("float64", H[0])) <= T.float64(9.2e18), H[0]), "ShapeError: main: 'x' dim 0 + 1 does not fit 64 bits; 'x' dim 0 = {0}"):
#             pass
#         with T.Assert(T.explain(T.abs(T.float64(-1.0) + T.Cast("float64", (H[0] + 1) // 2)) <= T.float64(9.2e18), H[0]), "ShapeError: main: ('x' dim 0 + 1) // 2 - 1 does not fit 64 bits; 'x' dim 0 = {0}"):
#             pass
#         H[1] = T.max(0, (H[0] + 1) // 2 + -1)
#
#     @T.prim_func(private=True)
#     def shape_func_main_1(H: T.Buffer((4,), "int64")):
#         with T.Assert(T.explain(T.abs(T.float64(1.0) + T.Cast("float64", H[1]) * T.float64(2.0)) <= T.float64(9.2e18), H[1]), "ShapeError: main: n * 2 + 1 does not fit 64 bits; n = {0}"):
#             pass
#         H[2] = H[1] * 2 + 1
#         with T.Assert(T.explain(T.abs(T.float64(1.0) + T.Cast("float64", H[1])) <= T.float64(9.2e18), H[1]), "ShapeError: main: n + 1 does not fit 64 bits; n = {0}"):
#             pass
#         H[3] = H[1] + 1
