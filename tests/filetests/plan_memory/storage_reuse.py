# A chain of matmuls and activations alternates between two storages.
# test opt --passes=LegalizeOps,ToNonDataflow,RemovePurityChecking,CallTIRRewrite,StaticPlanBlockMemory,LowerAllocTensor,KillAfterLastUse

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), w: R.Tensor(("m", "m"), "float32")) -> R.Tensor(("n", "m"), "float32"):
        with R.dataflow():
            a = R.matmul(x, w)
            b = R.nn.relu(a)
            c = R.matmul(b, w)
            d = R.nn.relu(c)
            e = R.matmul(d, w)
            f = R.add(e, x)
            R.output(f)
        return f

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32"), w: R.Tensor(("m", "m"), dtype="float32")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([m * n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _: R.Tuple = cls.matmul(x, w, a)
#         storage1: R.Object = R.memory.alloc_storage(R.shape([m * n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _1: R.Tuple = cls.relu(a, b)
#         _6: R.Tuple = R.memory.kill_tensor(a)
#         c: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _2: R.Tuple = cls.matmul(b, w, c)
#         _7: R.Tuple = R.memory.kill_tensor(b)
#         d: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _8: R.Tuple = R.memory.kill_storage(storage1)
#         _3: R.Tuple = cls.relu(c, d)
#         _9: R.Tuple = R.memory.kill_tensor(c)
#         e: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _10: R.Tuple = R.memory.kill_storage(storage)
#         _4: R.Tuple = cls.matmul(d, w, e)
#         _11: R.Tuple = R.memory.kill_tensor(d)
#         storage2: R.Object = R.memory.alloc_storage(R.shape([m * n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         f: R.Tensor((n, m), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([n, m]), R.dtype("float32"))
#         _12: R.Tuple = R.memory.kill_storage(storage2)
#         _5: R.Tuple = cls.add(e, x, f)
#         _13: R.Tuple = R.memory.kill_tensor(e)
#         return f
#
#     @T.prim_func(private=True)
#     def matmul(var_A: T.handle, var_B: T.handle, var_matmul: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (m, m), "float32")
#         matmul = T.match_buffer(var_matmul, (n, m), "float32")
#         for i, j, k in T.grid(n, m, m):
#             with T.block("matmul"):
#                 v_i, v_j, v_k = T.axis.remap("SSR", [i, j, k])
#                 T.reads(A[v_i, v_k], B[v_k, v_j])
#                 T.writes(matmul[v_i, v_j])
#                 with T.init():
#                     matmul[v_i, v_j] = T.float32(0.0)
#                 matmul[v_i, v_j] = matmul[v_i, v_j] + A[v_i, v_k] * B[v_k, v_j]
#
#     @T.prim_func(private=True)
#     def relu(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         compute = T.match_buffer(var_compute, (n, m), "float32")
#         for i0, i1 in T.grid(n, m):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.max(A[v_i0, v_i1], T.float32(0.0))
#
#     @T.prim_func(private=True)
#     def add(var_A: T.handle, var_B: T.handle, var_T_add: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         m = T.int64()
#         A = T.match_buffer(var_A, (n, m), "float32")
#         B = T.match_buffer(var_B, (n, m), "float32")
#         T_add = T.match_buffer(var_T_add, (n, m), "float32")
#         for ax0, ax1 in T.grid(n, m):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(T_add[v_ax0, v_ax1])
#                 T_add[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax0, v_ax1]
