# A `Primitive` function that contains an operator is not merged, and neither is one that is used as a value.
# test opt --passes=FuseTIR

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("exp"):
                vi = T.axis.spatial(4, i)
                B[vi] = T.exp(A[vi])

    @R.function(private=True)
    def operator(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.negative(a)
            R.output(b)
        return b

    @R.function(private=True)
    def value(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"Primitive": 1})
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), "float32"))
            b = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((4,), "float32"))
            R.output(b)
        return b

    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Object:
        cls = Module
        a = cls.operator(x)
        b = cls.value(a)
        f = cls.value
        return (b, f)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("exp"):
#                 vi = T.axis.spatial(4, i)
#                 B[vi] = T.exp(A[vi])
#
#     @R.function(private=True)
#     def operator(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             b: R.Tensor((4,), dtype="float32") = R.negative(a)
#             R.output(b)
#         return b
#
#     @R.function(private=True)
#     def value(x: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"Primitive": 1})
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4,), dtype="float32") = R.call_tir(cls.exp, (x,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             b: R.Tensor((4,), dtype="float32") = R.call_tir(cls.exp, (a,), out_sinfo=R.Tensor((4,), dtype="float32"))
#             R.output(b)
#         return b
#
#     @R.function
#     def main(x: R.Tensor((4,), dtype="float32")) -> R.Object:
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = cls.operator(x)
#         b: R.Tensor((4,), dtype="float32") = cls.value(a)
#         f: R.Callable((R.Tensor((4,), dtype="float32"),), R.Tensor((4,), dtype="float32"), True) = cls.value
#         return (b, f)
