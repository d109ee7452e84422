# Allocations of storages and tensors become operators of the VM.
# test opt --passes=LegalizeOps,CallTIRRewrite,LowerAllocTensor,LowerRuntimeBuiltin

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
#     def main(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.vm.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         a: R.Tensor((n, 4), dtype="float32") = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _: R.Tuple = cls.add(x, y, a)
#         storage1: R.Object = R.vm.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         b: R.Tensor((n, 4), dtype="float32") = R.vm.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _1: R.Tuple = cls.exp(a, b)
#         storage2: R.Object = R.vm.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         c: R.Tensor((n, 4), dtype="float32") = R.vm.alloc_tensor(storage2, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _2: R.Tuple = cls.multiply(b, x, c)
#         storage3: R.Object = R.vm.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         d: R.Tensor((n, 4), dtype="float32") = R.vm.alloc_tensor(storage3, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _3: R.Tuple = cls.subtract(c, y, d)
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
