# Unused bindings are removed before a loop, and inside of its condition and its body.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def double(a: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        return R.add(a, a)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y = x
        unused = R.exp(x)
        again = R.sin(y)

        @R.function
        def cond(i: R.Tensor((), "int64"), a: R.Tensor((n,), "float32")) -> R.Tensor((), "bool"):
            dead = R.sin(a)
            limit = R.add(R.const(1, "int64"), R.const(2, "int64"))
            return R.less(i, limit)

        @R.function
        def body(i: R.Tensor((), "int64"), a: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((n,), "float32")):
            b = cls.double(a)
            c = R.sin(x)
            d = R.sin(y)
            e = R.multiply(R.add(b, c), R.add(d, again))
            return (R.add(i, R.const(1, "int64")), e)

        t = R.while_loop(cond, body, R.const(0, "int64"), y)
        return t[1]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def double(a: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.add(a, a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         y: R.Tensor((n,), dtype="float32") = x
#         again: R.Tensor((n,), dtype="float32") = R.sin(y)
#         @R.function
#         def cond(i: R.Tensor((), dtype="int64"), a: R.Tensor((n,), dtype="float32")) -> R.Tensor((), dtype="bool"):
#             limit: R.Tensor((), dtype="int64") = R.add(R.const(1, "int64"), R.const(2, "int64"))
#             gv: R.Tensor((), dtype="bool") = R.less(i, limit)
#             return gv
#         @R.function
#         def body(i1: R.Tensor((), dtype="int64"), a1: R.Tensor((n,), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((n,), dtype="float32")):
#             b: R.Tensor((n,), dtype="float32") = cls.double(a1)
#             c: R.Tensor((n,), dtype="float32") = R.sin(x)
#             d: R.Tensor((n,), dtype="float32") = R.sin(y)
#             gv1: R.Tensor((n,), dtype="float32") = R.add(b, c)
#             gv2: R.Tensor((n,), dtype="float32") = R.add(d, again)
#             e: R.Tensor((n,), dtype="float32") = R.multiply(gv1, gv2)
#             gv3: R.Tensor((), dtype="int64") = R.add(i1, R.const(1, "int64"))
#             return (gv3, e)
#         t: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((n,), dtype="float32")) = R.while_loop(cond, body, R.const(0, "int64"), y)
#         gv4: R.Tensor((n,), dtype="float32") = t[1]
#         return gv4
