# An in-place call overwrites `a` between the two calls of the backend; the second call must read the new value, the first the old
# one.
# test opt --passes=MergeCompositeFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function(private=True)
    def exp(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "one.exp", "Primitive": 1})
        return R.exp(x)

    @R.function(private=True)
    def add(x: R.Tensor((4,), "float32"), y: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Composite": "one.add", "Primitive": 1})
        return R.add(x, y)

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        with R.dataflow():
            a = R.sin(x)
            b = cls.exp(a)
            c = R.call_tir_inplace(cls.double, (a,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
            d = cls.add(b, a)
            R.output(c, d)
        return (c, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("double"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.sin(x)
#             b: R.Tensor((4,), dtype="float32") = cls.exp_one(a)
#             c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (a,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#             d: R.Tensor((4,), dtype="float32") = cls.add_one(b, a)
#             R.output(c, d)
#         return (c, d)
#
#     @R.function(private=True)
#     def exp_one(a: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             gv: R.Tensor((4,), dtype="float32") = R.exp(x)
#             return gv
#         with R.dataflow():
#             b: R.Tensor((4,), dtype="float32") = exp(a)
#             R.output(b)
#         return b
#
#     @R.function(private=True)
#     def add_one(b: R.Tensor((4,), dtype="float32"), a: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def add(x: R.Tensor((4,), dtype="float32"), y: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#             R.func_attr({"Composite": "one.add", "Primitive": 1})
#             gv: R.Tensor((4,), dtype="float32") = R.add(x, y)
#             return gv
#         with R.dataflow():
#             d: R.Tensor((4,), dtype="float32") = add(b, a)
#             R.output(d)
#         return d
