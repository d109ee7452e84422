# The choice of a storage for smaller tensors, for tensors of branches, and for sizes with upper bounds.
# test opt --passes=LegalizeOps,CallTIRRewrite,StaticPlanBlockMemory,LowerAllocTensor

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def smaller(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.sum(b, axis=[1])
            d = R.exp(c)
            e = R.negative(d)
            R.output(e)
        return e

    @R.function
    def branches(c: R.Tensor((), "bool"), x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        a = R.exp(x)
        b = R.negative(a)
        k = R.exp(b)
        if c:
            p = R.exp(k)
            q = R.negative(p)
            r = R.exp(q)
        else:
            s = R.negative(k)
            r = R.exp(s)
        m = R.exp(k)
        z = R.add(m, r)
        return z

    @R.function
    def bounded(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        R.func_attr({"tir_var_upper_bound": {"n": 64, "m": 128}})
        with R.dataflow():
            a = R.exp(x)
            b = R.negative(a)
            c = R.exp(y)
            d = R.negative(c)
            R.output(b, d)
        return (b, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def smaller(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, a)
#         storage1: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _1: R.Tuple = cls.negative(a, b)
#         c: R.Tensor((n,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n]), R.dtype("float32"))
#         _2: R.Tuple = cls.sum(b, c)
#         d: R.Tensor((n,), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n]), R.dtype("float32"))
#         _3: R.Tuple = cls.exp1(c, d)
#         storage2: R.Object = R.memory.alloc_storage(R.shape([n * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         e: R.Tensor((n,), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([n]), R.dtype("float32"))
#         _4: R.Tuple = cls.negative1(d, e)
#         return e
#
#     @R.function
#     def branches(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, a)
#         storage1: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _1: R.Tuple = cls.negative(a, b)
#         storage2: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         k: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _2: R.Tuple = cls.exp(b, k)
#         if c:
#             p: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#             _5: R.Tuple = cls.exp(k, p)
#             q: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#             _6: R.Tuple = cls.negative(p, q)
#             storage4: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#             gv: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage4, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#             _7: R.Tuple = cls.exp(q, gv)
#             r: R.Tensor((n, 4), dtype="float32") = gv
#         else:
#             s: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#             _8: R.Tuple = cls.negative(k, s)
#             storage5: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#             gv1: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage5, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#             _9: R.Tuple = cls.exp(s, gv1)
#             r: R.Tensor((n, 4), dtype="float32") = gv1
#         m: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _3: R.Tuple = cls.exp(k, m)
#         storage3: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         z: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage3, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _4: R.Tuple = cls.add(m, r, z)
#         return z
#
#     @R.function
#     def bounded(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"tir_var_upper_bound": {"n": 64, "m": 128}, "relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([1024]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, a)
#         storage1: R.Object = R.memory.alloc_storage(R.shape([n * 16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((n, 4), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n, 4]), R.dtype("float32"))
#         _1: R.Tuple = cls.negative(a, b)
#         c: R.Tensor((m,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([m]), R.dtype("float32"))
#         _2: R.Tuple = cls.exp2(y, c)
#         storage2: R.Object = R.memory.alloc_storage(R.shape([m * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         d: R.Tensor((m,), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([m]), R.dtype("float32"))
#         _3: R.Tuple = cls.negative2(c, d)
#         return (b, d)
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
#     def negative(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         compute = T.match_buffer(var_compute, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = A[v_i0, v_i1] * T.float32(-1.0)
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, var_T_sum: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         T_sum = T.match_buffer(var_T_sum, (n,), "float32")
#         for ax0, k1 in T.grid(n, 4):
#             with T.block("T_sum"):
#                 v_ax0, v_k1 = T.axis.remap("SR", [ax0, k1])
#                 T.reads(A[v_ax0, v_k1])
#                 T.writes(T_sum[v_ax0])
#                 with T.init():
#                     T_sum[v_ax0] = T.float32(0.0)
#                 T_sum[v_ax0] = T_sum[v_ax0] + A[v_ax0, v_k1]
#
#     @T.prim_func(private=True)
#     def exp1(var_A: T.handle, var_compute: T.handle):
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
#     def negative1(var_A: T.handle, var_compute: T.handle):
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
#     def exp2(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         A = T.match_buffer(var_A, (m,), "float32")
#         compute = T.match_buffer(var_compute, (m,), "float32")
#         for i0 in range(m):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(m, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def negative2(var_A: T.handle, var_compute: T.handle):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         A = T.match_buffer(var_A, (m,), "float32")
#         compute = T.match_buffer(var_compute, (m,), "float32")
#         for i0 in range(m):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(m, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
