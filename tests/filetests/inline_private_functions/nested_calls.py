# Functions that call other private functions are inlined completely, at both calls.
# test opt --passes=InlinePrivateFunctions

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def inner(a: R.Tensor(("k",), "float32"), b: R.Tensor(("k",), "float32")) -> R.Tuple(R.Tensor(("k",), "float32"), R.Tensor(("k",), "float32")):
        with R.dataflow():
            lv = R.add(a, b)
            gv = R.exp(lv)
            R.output(lv, gv)
        return (lv, gv)

    @R.function(private=True)
    def outer(a: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        cls = Module
        t = cls.inner(a, a)
        r = R.multiply(t[0], t[1])
        return r

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.sin(x)
            y = cls.outer(lv)
            z = cls.outer(y)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.sin(x)
#             lv1: R.Tensor((n,), dtype="float32") = R.add(lv, lv)
#             gv2: R.Tensor((n,), dtype="float32") = R.exp(lv1)
#             t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (lv1, gv2)
#             gv: R.Tensor((n,), dtype="float32") = t[0]
#             gv1: R.Tensor((n,), dtype="float32") = t[1]
#             y: R.Tensor((n,), dtype="float32") = R.multiply(gv, gv1)
#             lv2: R.Tensor((n,), dtype="float32") = R.add(y, y)
#             gv4: R.Tensor((n,), dtype="float32") = R.exp(lv2)
#             t1: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (lv2, gv4)
#             gv3: R.Tensor((n,), dtype="float32") = t1[0]
#             gv11: R.Tensor((n,), dtype="float32") = t1[1]
#             z: R.Tensor((n,), dtype="float32") = R.multiply(gv3, gv11)
#             R.output(z)
#         return z
