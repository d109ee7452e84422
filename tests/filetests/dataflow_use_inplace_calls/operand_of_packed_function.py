# A packed function or a function of the module may keep its operand, so nothing overwrites the operand afterwards.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def same(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return x

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        with R.dataflow():
            a = R.exp(x)
            p = R.call_pure_packed("test.double", a, sinfo_args=R.Tensor((n,), "float32"))
            b = R.sin(a)
            c = R.exp(x)
            q = cls.same(c)
            d = R.sin(c)
            R.output(p, b, q, d)
        return (p, b, q, d)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def same(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         return x
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.exp(x)
#             p: R.Tensor((n,), dtype="float32") = R.call_pure_packed("test.double", a, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             c: R.Tensor((n,), dtype="float32") = R.exp(x)
#             q: R.Tensor((n,), dtype="float32") = cls.same(c)
#             d: R.Tensor((n,), dtype="float32") = R.sin(c)
#             R.output(p, b, q, d)
#         return (p, b, q, d)
