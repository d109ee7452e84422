# Outputs with sizes computed from symbols are allocated, and the extra sizes of a loop function are passed after the outputs.
# test opt --passes=CallTIRRewrite,LowerAllocTensor,KillAfterLastUse

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def window(a: T.handle, b: T.handle, c: T.handle, k: T.int64):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n * 2,), "float32")
        C = T.match_buffer(c, (n + 1,), "float32")
        for i in range(n * 2):
            with T.block("b"):
                v = T.axis.spatial(n * 2, i)
                B[v] = A[v // 2] + T.Cast("float32", k)
        for i in range(n + 1):
            with T.block("c"):
                v = T.axis.spatial(n + 1, i)
                C[v] = T.if_then_else(v < n, A[v], T.float32(0.0))

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("k",), "float32")) -> R.Object:
        n, k = T.int64(), T.int64()
        cls = Module
        with R.dataflow():
            t = R.call_tir(
                cls.window,
                (x,),
                out_sinfo=[R.Tensor((n * 2,), "float32"), R.Tensor((n + 1,), "float32")],
                tir_vars=R.shape([k]),
            )
            r = t[1]
            R.output(t, r)
        return (t[0], r)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def window(a: T.handle, b: T.handle, c: T.handle, k: T.int64):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n * 2,), "float32")
#         C = T.match_buffer(c, (n + 1,), "float32")
#         for i in range(n * 2):
#             with T.block("b"):
#                 v = T.axis.spatial(n * 2, i)
#                 B[v] = A[v // 2] + T.Cast("float32", k)
#         for i in range(n + 1):
#             with T.block("c"):
#                 v = T.axis.spatial(n + 1, i)
#                 C[v] = T.if_then_else(v < n, A[v], T.float32(0.0))
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("k",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         k = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         cls = Module
#         storage: R.Object = R.memory.alloc_storage(R.shape([n * 8]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         alloc: R.Tensor((n * 2,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([n * 2]), R.dtype("float32"))
#         _1: R.Tuple = R.memory.kill_storage(storage)
#         storage1: R.Object = R.memory.alloc_storage(R.shape([n * 4 + 4]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
#         alloc1: R.Tensor((n + 1,), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([n + 1]), R.dtype("float32"))
#         _2: R.Tuple = R.memory.kill_storage(storage1)
#         _: R.Tuple = cls.window(x, alloc, alloc1, R.prim_value(k))
#         t: R.Tuple(R.Tensor((n * 2,), dtype="float32"), R.Tensor((n + 1,), dtype="float32")) = (alloc, alloc1)
#         _3: R.Tuple = R.memory.kill_tensor(alloc)
#         _4: R.Tuple = R.memory.kill_tensor(alloc1)
#         r: R.Tensor((n + 1,), dtype="float32") = t[1]
#         gv: R.Tensor((n * 2,), dtype="float32") = t[0]
#         return (gv, r)
