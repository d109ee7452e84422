# Two elementwise blocks are elementwise together, with an output each, and if the second reads what the first has written.
# test opt --passes=AnnotateTIROpPattern

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def both(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(4):
            with T.block("c"):
                vi = T.axis.spatial(4, i)
                C[vi] = A[vi] * T.float32(2)

    @T.prim_func(private=True)
    def chain(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
        B = T.alloc_buffer((4,), "float32")
        for i in range(4):
            with T.block("b"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi] + T.float32(1)
        for i in range(4):
            with T.block("c"):
                vi = T.axis.spatial(4, i)
                C[vi] = B[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        a = R.call_tir(cls.both, (x,), out_sinfo=[R.Tensor((4,), "float32"), R.Tensor((4,), "float32")])
        b = R.call_tir(cls.chain, (x,), out_sinfo=R.Tensor((4,), "float32"))
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def both(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 0})
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = A[vi] + T.float32(1.0)
#         for i in range(4):
#             with T.block("c"):
#                 vi = T.axis.spatial(4, i)
#                 C[vi] = A[vi] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def chain(A: T.Buffer((4,), "float32"), C: T.Buffer((4,), "float32")):
#         T.func_attr({"op_pattern": 0})
#         B = T.alloc_buffer((4,), "float32")
#         for i in range(4):
#             with T.block("b"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = A[vi] + T.float32(1.0)
#         for i in range(4):
#             with T.block("c"):
#                 vi = T.axis.spatial(4, i)
#                 C[vi] = B[vi] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         a: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = R.call_tir(cls.both, (x,), out_sinfo=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")])
#         b: R.Tensor((4,), dtype="float32") = R.call_tir(cls.chain, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#         return (a, b)
