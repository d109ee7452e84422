# Sizes that a branch needs are computed before it, and a private function does not check again what its only caller passes.
# test opt --passes=LegalizeOps,ToNonDataflow,RemovePurityChecking,CallTIRRewrite,StaticPlanBlockMemory,LowerAllocTensor,KillAfterLastUse,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def double(x: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        return R.add(x, x)

    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        if c:
            a = cls.double(x)
            y = R.exp(a)
        else:
            y = R.negative(x)
        z = R.multiply(y, x)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def double(x: R.Tensor(("k",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         k = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
#         _2: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("double: 'x'"), sinfo_args=(R.Tuple,))
#         _3: R.Tuple = cls.shape_func_double_0(shape_heap)
#         shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#         storage: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         shape1: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), sinfo_args=(R.Shape(ndim=1),))
#         gv: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage, R.prim_value(0), shape1, R.dtype("float32"))
#         _1: R.Tuple = R.vm.kill_object(storage)
#         _: R.Tuple = cls.add(x, x, gv)
#         return gv
#
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
#         _7: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", c, R.prim_value(0), R.dtype("bool"), R.str("main: 'c'"), sinfo_args=(R.Tuple,))
#         _8: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(1), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _9: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _10: R.Tuple = cls.shape_func_main_0(shape_heap)
#         if c:
#             a: R.Tensor(dtype="float32", ndim=1) = cls.double(x)
#             shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#             storage1: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#             shape1: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), sinfo_args=(R.Shape(ndim=1),))
#             gv: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage1, R.prim_value(0), shape1, R.dtype("float32"))
#             _4: R.Tuple = R.vm.kill_object(storage1)
#             _1: R.Tuple = cls.exp(a, gv)
#             _5: R.Tuple = R.vm.kill_object(a)
#             y: R.Tensor(dtype="float32", ndim=1) = gv
#         else:
#             shape2: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#             storage2: R.Object = R.vm.alloc_storage(shape2, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#             shape3: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), sinfo_args=(R.Shape(ndim=1),))
#             gv1: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage2, R.prim_value(0), shape3, R.dtype("float32"))
#             _6: R.Tuple = R.vm.kill_object(storage2)
#             _2: R.Tuple = cls.negative(x, gv1)
#             y: R.Tensor(dtype="float32", ndim=1) = gv1
#         shape4: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#         storage: R.Object = R.vm.alloc_storage(shape4, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         shape5: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(0), sinfo_args=(R.Shape(ndim=1),))
#         z: R.Tensor(dtype="float32", ndim=1) = R.vm.alloc_tensor(storage, R.prim_value(0), shape5, R.dtype("float32"))
#         _3: R.Tuple = R.vm.kill_object(storage)
#         _: R.Tuple = cls.multiply(y, x, z)
#         return z
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         k = T.int64()
#         A = T.match_buffer(var_A, (k,), "float32")
#         B = T.match_buffer(var_B, (k,), "float32")
#         T_add = T.match_buffer(var_T_add, (k,), "float32")
#         for ax0 in range(k):
#             with T.block("T_add"):
#                 v_ax0 = T.axis.spatial(k, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_add[v_ax0])
#                 T_add[v_ax0] = A[v_ax0] + B[v_ax0]
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_B: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_multiply"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_multiply[v_ax0])
#                 T_multiply[v_ax0] = A[v_ax0] * B[v_ax0]
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def negative(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         compute = T.match_buffer(var_compute, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
#
#     @T.prim_func(private=True)
#     def shape_func_double_0(H: T.Buffer((2,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[0]) * T.float64(4.0)) <= T.float64(9.2e18), H[0]), "ShapeError: double: k * 4 does not fit 64 bits; k = {0}"):
#             pass
#         H[1] = H[0] * 4
#
#     @T.prim_func(private=True)
#     def shape_func_main_0(H: T.Buffer((2,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[0]) * T.float64(4.0)) <= T.float64(9.2e18), H[0]), "ShapeError: main: n * 4 does not fit 64 bits; n = {0}"):
#             pass
#         H[1] = H[0] * 4
