# The checks of the parameters, and the sizes of the allocated tensors, for two inputs of the same symbolic size.
# test opt --passes=LegalizeOps,ToNonDataflow,RemovePurityChecking,CallTIRRewrite,StaticPlanBlockMemory,LowerAllocTensor,KillAfterLastUse,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            a = R.add(x, y)
            b = R.exp(a)
            c = R.multiply(b, x)
            R.output(c)
        d = R.subtract(c, y)
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(dtype="float32", ndim=2):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         shape_heap: R.Tensor((2,), dtype="int64") = R.call_builtin_with_ctx("vm.builtin.alloc_shape_heap", (R.prim_value(2),), sinfo_args=(R.Tensor((2,), dtype="int64"),))
#         _10: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(2), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _11: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", y, R.prim_value(2), R.dtype("float32"), R.str("main: 'y'"), sinfo_args=(R.Tuple,))
#         _12: R.Tuple = R.call_packed("vm.builtin.match_shape", x, shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(0), R.prim_value(0), R.prim_value(4), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _13: R.Tuple = R.call_packed("vm.builtin.match_shape", y, shape_heap, R.prim_value(2), R.prim_value(3), R.prim_value(0), R.prim_value(0), R.prim_value(4), R.str("main: 'y'\nn\t'x' dim 0"), sinfo_args=(R.Tuple,))
#         _14: R.Tuple = cls.shape_func_main_0(shape_heap)
#         shape: R.Shape(ndim=1) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(1), R.prim_value(1), R.prim_value(1), sinfo_args=(R.Shape(ndim=1),))
#         storage: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         shape1: R.Shape(ndim=2) = R.call_packed("vm.builtin.make_shape", shape_heap, R.prim_value(2), R.prim_value(1), R.prim_value(0), R.prim_value(0), R.prim_value(4), sinfo_args=(R.Shape(ndim=2),))
#         a: R.Tensor(dtype="float32", ndim=2) = R.vm.alloc_tensor(storage, R.prim_value(0), shape1, R.dtype("float32"))
#         _: R.Tuple = cls.add(x, y, a)
#         storage1: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         b: R.Tensor(dtype="float32", ndim=2) = R.vm.alloc_tensor(storage1, R.prim_value(0), shape1, R.dtype("float32"))
#         _4: R.Tuple = R.vm.kill_object(storage1)
#         _1: R.Tuple = cls.exp(a, b)
#         _5: R.Tuple = R.vm.kill_object(a)
#         c: R.Tensor(dtype="float32", ndim=2) = R.vm.alloc_tensor(storage, R.prim_value(0), shape1, R.dtype("float32"))
#         _6: R.Tuple = R.vm.kill_object(storage)
#         _2: R.Tuple = cls.multiply(b, x, c)
#         _7: R.Tuple = R.vm.kill_object(b)
#         storage2: R.Object = R.vm.alloc_storage(shape, R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         d: R.Tensor(dtype="float32", ndim=2) = R.vm.alloc_tensor(storage2, R.prim_value(0), shape1, R.dtype("float32"))
#         _8: R.Tuple = R.vm.kill_object(storage2)
#         _3: R.Tuple = cls.subtract(c, y, d)
#         _9: R.Tuple = R.vm.kill_object(c)
#         return d
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (n, 4), "float32")
#         T_add = T.match_buffer(var_T_add, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax0, v_ax1]
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         compute = T.match_buffer(var_compute, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def multiply(var_A: T.handle, var_B: T.handle, var_T_multiply: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (n, 4), "float32")
#         T_multiply = T.match_buffer(var_T_multiply, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_multiply"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(T_multiply[v_ax0, v_ax1])
#                 T_multiply[v_ax0, v_ax1] = A[v_ax0, v_ax1] * B[v_ax0, v_ax1]
#
#     @T.prim_func(private=True)
#     def subtract(var_A: T.handle, var_B: T.handle, var_T_subtract: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (n, 4), "float32")
#         T_subtract = T.match_buffer(var_T_subtract, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_subtract"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(T_subtract[v_ax0, v_ax1])
#                 T_subtract[v_ax0, v_ax1] = A[v_ax0, v_ax1] - B[v_ax0, v_ax1]
#
#     @T.prim_func(private=True)
#     def shape_func_main_0(H: T.Buffer((2,), "int64")):
#         with T.Assert(T.explain(T.abs(T.Cast("float64", H[0]) * T.float64(16.0)) <= T.float64(9.2e18), H[0]), "ShapeError: main: n * 16 does not fit 64 bits; n = {0}"):
#             pass
#         H[1] = H[0] * 16
