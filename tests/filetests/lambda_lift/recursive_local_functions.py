# A recursive function, and two mutually recursive ones: each captures what all of them need.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()

        @R.function
        def repeat(i: R.Tensor((), "int64"), acc: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            if R.equal(i, R.const(0, "int64")):
                r = acc
            else:
                more = R.add(acc, x)
                r = repeat(R.subtract(i, R.const(1, "int64")), more)
            return r

        a = repeat(R.const(3, "int64"), x)

        @R.function
        def even(i: R.Tensor((), "int64"), acc: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            if R.equal(i, R.const(0, "int64")):
                r = acc
            else:
                r = odd(R.subtract(i, R.const(1, "int64")), R.add(acc, x))
            return r

        @R.function
        def odd(i: R.Tensor((), "int64"), acc: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            if R.equal(i, R.const(0, "int64")):
                r = R.negative(acc)
            else:
                r = even(R.subtract(i, R.const(1, "int64")), R.multiply(acc, y))
            return r

        b = even(R.const(5, "int64"), y)
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n,), dtype="float32") = cls.main_repeat(R.const(3, "int64"), x, x)
#         b: R.Tensor((n,), dtype="float32") = cls.main_even(R.const(5, "int64"), y, x, y)
#         return (a, b)
#
#     @R.function(private=True)
#     def main_repeat(i: R.Tensor((), dtype="int64"), acc: R.Tensor(("n",), dtype="float32"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 1})
#         cls = Module
#         gv: R.Tensor((), dtype="bool") = R.equal(i, R.const(0, "int64"))
#         if gv:
#             r: R.Tensor((n,), dtype="float32") = acc
#         else:
#             more: R.Tensor((n,), dtype="float32") = R.add(acc, x)
#             gv1: R.Tensor((), dtype="int64") = R.subtract(i, R.const(1, "int64"))
#             gv2: R.Tensor((n,), dtype="float32") = cls.main_repeat(gv1, more, x)
#             r: R.Tensor((n,), dtype="float32") = gv2
#         return r
#
#     @R.function(private=True)
#     def main_even(i1: R.Tensor((), dtype="int64"), acc1: R.Tensor(("n",), dtype="float32"), x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 2})
#         cls = Module
#         gv3: R.Tensor((), dtype="bool") = R.equal(i1, R.const(0, "int64"))
#         if gv3:
#             r1: R.Tensor((n,), dtype="float32") = acc1
#         else:
#             gv4: R.Tensor((), dtype="int64") = R.subtract(i1, R.const(1, "int64"))
#             gv5: R.Tensor((n,), dtype="float32") = R.add(acc1, x)
#             gv6: R.Tensor((n,), dtype="float32") = cls.main_odd(gv4, gv5, y, x)
#             r1: R.Tensor((n,), dtype="float32") = gv6
#         return r1
#
#     @R.function(private=True)
#     def main_odd(i2: R.Tensor((), dtype="int64"), acc2: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 2})
#         cls = Module
#         gv7: R.Tensor((), dtype="bool") = R.equal(i2, R.const(0, "int64"))
#         if gv7:
#             gv8: R.Tensor((n,), dtype="float32") = R.negative(acc2)
#             r2: R.Tensor((n,), dtype="float32") = gv8
#         else:
#             gv9: R.Tensor((), dtype="int64") = R.subtract(i2, R.const(1, "int64"))
#             gv10: R.Tensor((n,), dtype="float32") = R.multiply(acc2, y)
#             gv11: R.Tensor((n,), dtype="float32") = cls.main_even(gv9, gv10, x, y)
#             r2: R.Tensor((n,), dtype="float32") = gv11
#         return r2
