# A field that no caller reads is removed at all calls; a tuple that is read as a whole keeps its fields.
# test opt --passes=RemoveUnusedOutputs,CanonicalizeBindings,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def three(a: R.Tensor(("k",), "float32")) -> R.Tuple(R.Tensor(("k",), "float32"), R.Tensor(("k",), "float32"), R.Tensor(("k",), "float32")):
        return (R.exp(a), R.sin(a), R.cos(a))

    @R.function(private=True)
    def whole(a: R.Tensor(("k",), "float32")) -> R.Tuple(R.Tensor(("k",), "float32"), R.Tensor(("k",), "float32")):
        t = (R.exp(a), a)
        return t

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"))):
        cls = Module
        t = cls.three(x)
        u = cls.three(t[0])
        v = u[2]
        w = cls.whole(v)
        return (v, w)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def three(a: R.Tensor(("k",), dtype="float32")) -> R.Tuple(R.Tensor(("k",), dtype="float32"), R.Tensor(("k",), dtype="float32")):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.exp(a)
#         gv2: R.Tensor((k,), dtype="float32") = R.cos(a)
#         return (gv, gv2)
#
#     @R.function(private=True)
#     def whole(a: R.Tensor(("k",), dtype="float32")) -> R.Tuple(R.Tensor(("k",), dtype="float32"), R.Tensor(("k",), dtype="float32")):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.exp(a)
#         t: R.Tuple(R.Tensor((k,), dtype="float32"), R.Tensor((k,), dtype="float32")) = (gv, a)
#         return t
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32"))):
#         n = T.int64()
#         cls = Module
#         t: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = cls.three(x)
#         gv: R.Tensor((n,), dtype="float32") = t[0]
#         u: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = cls.three(gv)
#         v: R.Tensor((n,), dtype="float32") = u[1]
#         w: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = cls.whole(v)
#         return (v, w)
