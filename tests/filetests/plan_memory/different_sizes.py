# `n + 1` elements provably fit where `n + 2` were, and so does a scalar afterwards; `m` elements may not fit.
# test opt --passes=LegalizeOps,CallTIRRewrite,StaticPlanBlockMemory

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n + 2",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Object:
        n = T.int64()
        m = T.int64()
        a = R.sum(R.exp(x))
        b = R.sum(R.arange(n + 1, dtype="float32"))
        c = R.sum(R.exp(y))
        return R.add(R.add(a, b), c)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n + 2",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([n * 4 + 8]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         gv: R.Tensor((n + 2,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n + 2]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, gv, R.prim_value(n))
#         storage1: R.Object = R.memory.alloc_storage(R.shape([4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([]), R.dtype("float32"))
#         _1: R.Tuple = cls.sum(gv, a, R.prim_value(n))
#         gv1: R.Tensor((n + 1,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n + 1]), R.dtype("float32"))
#         _2: R.Tuple = cls.arange(gv1, R.prim_value(n))
#         storage2: R.Object = R.memory.alloc_storage(R.shape([4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         b: R.Tensor((), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([]), R.dtype("float32"))
#         _3: R.Tuple = cls.sum1(gv1, b, R.prim_value(n))
#         storage3: R.Object = R.memory.alloc_storage(R.shape([m * 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         gv2: R.Tensor((m,), dtype="float32") = R.memory.alloc_tensor(storage3, R.prim_value(0), R.shape([m]), R.dtype("float32"))
#         _4: R.Tuple = cls.exp1(y, gv2)
#         c: R.Tensor((), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([]), R.dtype("float32"))
#         _5: R.Tuple = cls.sum2(gv2, c)
#         storage4: R.Object = R.memory.alloc_storage(R.shape([4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         gv3: R.Tensor((), dtype="float32") = R.memory.alloc_tensor(storage4, R.prim_value(0), R.shape([]), R.dtype("float32"))
#         _6: R.Tuple = cls.add(a, b, gv3)
#         gv4: R.Tensor((), dtype="float32") = R.builtin.alloc_tensor(R.shape([]), R.dtype("float32"), R.prim_value(0))
#         _7: R.Tuple = cls.add(gv3, c, gv4)
#         return gv4
#
#     @T.prim_func(private=True)
#     def exp(var_A: T.handle, var_compute: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (n + 2,), "float32")
#         compute = T.match_buffer(var_compute, (n + 2,), "float32")
#         for i0 in range(n + 2):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n + 2, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def sum(var_A: T.handle, T_sum: T.Buffer((), "float32"), n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (n + 2,), "float32")
#         for k0 in range(n + 2):
#             with T.block("T_sum"):
#                 v_k0 = T.axis.reduce(n + 2, k0)
#                 T.reads(A[v_k0])
#                 T.writes(T_sum[()])
#                 with T.init():
#                     T_sum[()] = T.float32(0.0)
#                 T_sum[()] = T_sum[()] + A[v_k0]
#
#     @T.prim_func(private=True)
#     def arange(var_T_arange: T.handle, n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         T_arange = T.match_buffer(var_T_arange, (n + 1,), "float32")
#         for ax0 in range(n + 1):
#             with T.block("T_arange"):
#                 v_ax0 = T.axis.spatial(n + 1, ax0)
#                 T.reads()
#                 T.writes(T_arange[v_ax0])
#                 T_arange[v_ax0] = T.Cast("float32", v_ax0)
#
#     @T.prim_func(private=True)
#     def sum1(var_A: T.handle, T_sum: T.Buffer((), "float32"), n: T.int64):
#         T.func_attr({"tir.noalias": True})
#         A = T.match_buffer(var_A, (n + 1,), "float32")
#         for k0 in range(n + 1):
#             with T.block("T_sum"):
#                 v_k0 = T.axis.reduce(n + 1, k0)
#                 T.reads(A[v_k0])
#                 T.writes(T_sum[()])
#                 with T.init():
#                     T_sum[()] = T.float32(0.0)
#                 T_sum[()] = T_sum[()] + A[v_k0]
#
#     @T.prim_func(private=True)
#     def exp1(var_A: T.handle, var_compute: T.handle):
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
#     def sum2(var_A: T.handle, T_sum: T.Buffer((), "float32")):
#         T.func_attr({"tir.noalias": True})
#         m = T.int64()
#         A = T.match_buffer(var_A, (m,), "float32")
#         for k0 in range(m):
#             with T.block("T_sum"):
#                 v_k0 = T.axis.reduce(m, k0)
#                 T.reads(A[v_k0])
#                 T.writes(T_sum[()])
#                 with T.init():
#                     T_sum[()] = T.float32(0.0)
#                 T_sum[()] = T_sum[()] + A[v_k0]
#
#     @T.prim_func(private=True)
#     def add(A: T.Buffer((), "float32"), B: T.Buffer((), "float32"), T_add: T.Buffer((), "float32")):
#         T.func_attr({"tir.noalias": True})
#         with T.block("T_add"):
#             T.reads(A[()], B[()])
#             T.writes(T_add[()])
#             T_add[()] = A[()] + B[()]
