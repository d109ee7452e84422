# Tensors in a tuple, passed to a packed function, or returned keep their own memory.
# test opt --passes=LegalizeOps,CallTIRRewrite,StaticPlanBlockMemory

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        a = R.exp(x)
        b = R.negative(a)
        R.call_packed("test.describe", b)
        c = R.abs(b)
        d = R.sin(c)
        t = (c, d)
        e = R.cos(d)
        return (t, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         a: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#         _1: R.Tuple = cls.exp(x, a)
#         b: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _2: R.Tuple = cls.negative(a, b)
#         _: R.Object = R.call_packed("test.describe", b)
#         c: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _3: R.Tuple = cls.abs(b, c)
#         d: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _4: R.Tuple = cls.sin(c, d)
#         t: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = (c, d)
#         e: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#         _5: R.Tuple = cls.cos(d, e)
#         return (t, e)
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
#     def abs(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.abs(A[v_i0])
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
#     def cos(A: T.Buffer((4,), "float32"), compute: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0 in range(4):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(4, i0)
#                 T.reads(A[v_i0])
#                 T.writes(compute[v_i0])
#                 compute[v_i0] = T.cos(A[v_i0])
