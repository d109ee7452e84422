# A value that an in-place call overwrites is not merged with an equal value.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def negate(A: T.Buffer((T.int64(4),), "float32")):
        T.func_attr({"tir.noalias": True})
        for i in range(4):
            with T.sblock("negate"):
                vi = T.axis.spatial(4, i)
                A[vi] = T.float32(0) - A[vi]

    @R.function
    def written(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        a = R.add(x, x)
        b = R.add(x, x)
        c = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        return (b, c)

    @R.function
    def apart(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        a = R.add(x, x)
        b = R.multiply(x, x)
        d = R.multiply(x, x)
        c = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        e = R.add(b, d)
        return (e, c)

    @R.function(pure=False)
    def around(x: R.Tensor((4,), "float32")) -> R.Tuple(R.Tensor((4,), "float32"), R.Tensor((4,), "float32")):
        cls = Module
        y = R.exp(x)
        before = R.add(y, y)
        again = R.add(y, y)
        _ = R.call_tir_inplace(cls.negate, (y,), out_sinfo=R.Tensor((4,), "float32"), inplace_indices=[0])
        after = R.add(y, y)
        both = R.multiply(before, again)
        return (both, after)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def negate(A: T.Buffer((4,), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i in range(4):
#             with T.block("negate"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = T.float32(0.0) - A[vi]
#
#     @R.function
#     def written(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.add(x, x)
#         b: R.Tensor((4,), dtype="float32") = R.add(x, x)
#         c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         return (b, c)
#
#     @R.function
#     def apart(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.add(x, x)
#         b: R.Tensor((4,), dtype="float32") = R.multiply(x, x)
#         c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.negate, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         e: R.Tensor((4,), dtype="float32") = R.add(b, b)
#         return (e, c)
#
#     @R.function(pure=False)
#     def around(x: R.Tensor((4,), dtype="float32")) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         cls = Module
#         y: R.Tensor((4,), dtype="float32") = R.exp(x)
#         before: R.Tensor((4,), dtype="float32") = R.add(y, y)
#         _: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.negate, (y,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         after: R.Tensor((4,), dtype="float32") = R.add(y, y)
#         both: R.Tensor((4,), dtype="float32") = R.multiply(before, before)
#         return (both, after)
