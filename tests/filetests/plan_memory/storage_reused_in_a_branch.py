# A tensor that dies before a branch gives its storage to a tensor of the arm; what the arm returns keeps its own memory.
# test opt --passes=LegalizeOps,CallTIRRewrite,StaticPlanBlockMemory

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        a = R.exp(x)
        b = R.sum(a)
        if c:
            d = R.sin(x)
            e = R.multiply(d, b)
        else:
            e = R.cos(x)
        g = R.exp(e)
        h = R.negative(g)
        return h

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, a)
#         b: R.Tensor((), dtype="float32") = R.builtin.alloc_tensor(R.shape([]), R.dtype("float32"), R.prim_value(0))
#         _1: R.Tuple = cls.sum(a, b)
#         if c:
#             d: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#             _4: R.Tuple = cls.sin(x, d)
#             gv: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#             _5: R.Tuple = cls.multiply(d, b, gv)
#             e: R.Tensor((4,), dtype="float32") = gv
#         else:
#             gv1: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#             _6: R.Tuple = cls.cos(x, gv1)
#             e: R.Tensor((4,), dtype="float32") = gv1
#         g: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#         _2: R.Tuple = cls.exp(e, g)
#         h: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _3: R.Tuple = cls.negative(g, h)
#         return h
#
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.exp(A[v_i0])
#
#     @T.prim_func(private=True)
#     def sum(A: T.Buffer((4,), "float32"), T_sum: T.Buffer((), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for k0 in range(4):
#             with T.block("T_sum"):
#                 v_k0 = T.axis.reduce(4, k0)
#                 T.reads(A[v_k0])
#                 T.writes(T_sum[()])
#                 with T.init():
#                     T_sum[()] = T.float32(0.0)
#                 T_sum[()] = T_sum[()] + A[v_k0]
#
#     @T.prim_func(private=True)
#     def negative(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = A[v_i0] * T.float32(-1.0)
#
#     @T.prim_func(private=True)
#     def sin(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.sin(A[v_i0])
#
#     @T.prim_func(private=True)
#     def multiply(A: T.Buffer((4,), "float32"), B: T.Buffer((), "float32"), T_multiply: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0 in range(4):
#             with T.block("T_multiply"):
#                 v_ax0 = T.axis.spatial(4, ax0)
#                 T.reads(A[v_ax0], B[()])
#                 T.writes(T_multiply[v_ax0])
#                 T_multiply[v_ax0] = A[v_ax0] * B[()]
#
#     @T.prim_func(private=True)
#     def cos(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.cos(A[v_i0])
