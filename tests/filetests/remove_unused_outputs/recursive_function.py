# A recursive function returns the tuple of its own call: this uses the tuple as a whole, so both fields stay.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def count(k: R.Prim("int64"), a: R.Tensor((), "int64")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64")):
        cls = Module
        if k > 0:
            r = cls.count(k - 1, R.add(a, R.const(2, "int64")))
        else:
            r = (R.negative(a), a)
        return r

    @R.function
    def main(x: R.Tensor((), "int64"), k: R.Prim(value="k")) -> R.Tensor((), "int64"):
        k = T.int64()
        cls = Module
        t = cls.count(k, x)
        return t[1]

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def count(k1: R.Prim(value="k"), a: R.Tensor((), dtype="int64")) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")):
#         k = T.int64()
#         cls = Module
#         if R.prim_value(T.bool(1 <= k)):
#             gv: R.Tensor((), dtype="int64") = R.add(a, R.const(2, "int64"))
#             gv1: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")) = cls.count(R.prim_value(k - 1), gv)
#             r: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")) = gv1
#         else:
#             gv2: R.Tensor((), dtype="int64") = R.negative(a)
#             r: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")) = (gv2, a)
#         return r
#
#     @R.function
#     def main(x: R.Tensor((), dtype="int64"), k1: R.Prim(value="k")) -> R.Tensor((), dtype="int64"):
#         k = T.int64()
#         cls = Module
#         t: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")) = cls.count(k1, x)
#         gv: R.Tensor((), dtype="int64") = t[1]
#         return gv
