# The body of a loop is a function of its own: its tensors do not share storages with those around the loop.
# test opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite,StaticPlanBlockMemory

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = R.exp(x)
        s = R.sum(y)
        for i in R.range(3):
            a = R.sin(x)
            b = R.multiply(a, s)
            x = R.add(b, x)
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         y: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, y)
#         s: R.Tensor((), dtype="float32") = R.builtin.alloc_tensor(R.shape([]), R.dtype("float32"), R.prim_value(0))
#         _1: R.Tuple = cls.sum(y, s)
#         @R.function
#         def cond(i1_1: R.Prim(value="i"), x3: R.Tensor((4,), dtype="float32")) -> R.Prim("bool", value="i <= 2"):
#             i = T.int64()
#             return R.prim_value(T.bool(i <= 2))
#         @R.function
#         def body(i2: R.Prim(value="i1"), x1: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Prim(value="i1 + 1"), R.Tensor((4,), dtype="float32")):
#             i1 = T.int64()
#             storage1: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#             a: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#             _2: R.Tuple = cls.sin(x1, a)
#             storage2: R.Object = R.memory.alloc_storage(R.shape([16]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#             b: R.Tensor((4,), dtype="float32") = R.memory.alloc_tensor(storage2, R.prim_value(0), R.shape([4]), R.dtype("float32"))
#             _3: R.Tuple = cls.multiply(a, s, b)
#             x2: R.Tensor((4,), dtype="float32") = R.builtin.alloc_tensor(R.shape([4]), R.dtype("float32"), R.prim_value(0))
#             _4: R.Tuple = cls.add(b, x1, x2)
#             return (R.prim_value(i1 + 1), x2)
#         gv: R.Tuple(R.Prim("int64"), R.Tensor((4,), dtype="float32")) = R.while_loop(cond, body, R.prim_value(0), x)
#         x4: R.Tensor((4,), dtype="float32") = gv[1]
#         return x4
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
#     def add(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), T_add: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0 in range(4):
#             with T.block("T_add"):
#                 v_ax0 = T.axis.spatial(4, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(T_add[v_ax0])
#                 T_add[v_ax0] = A[v_ax0] + B[v_ax0]
