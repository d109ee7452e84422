# A recursive function that only passes a parameter on to itself does not read it, so the parameter is removed.
# test opt --passes=RemoveUnusedParameters

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def count(k: R.Prim("int64"), a: R.Tensor((), "int64"), unused: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        if k > 0:
            r = cls.count(k - 1, R.add(a, R.const(2, "int64")), a)
        else:
            r = a
        return r

    @R.function
    def main(x: R.Tensor((), "int64"), k: R.Prim(value="k")) -> R.Tensor((), "int64"):
        k = T.int64()
        cls = Module
        y = cls.count(k, x, x)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def count(k1: R.Prim(value="k"), a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         k = T.int64()
#         cls = Module
#         if R.prim_value(T.bool(1 <= k)):
#             gv: R.Tensor((), dtype="int64") = R.add(a, R.const(2, "int64"))
#             gv1: R.Tensor((), dtype="int64") = cls.count(R.prim_value(k - 1), gv)
#             r: R.Tensor((), dtype="int64") = gv1
#         else:
#             r: R.Tensor((), dtype="int64") = a
#         return r
#
#     @R.function
#     def main(x: R.Tensor((), dtype="int64"), k1: R.Prim(value="k")) -> R.Tensor((), dtype="int64"):
#         k = T.int64()
#         cls = Module
#         y: R.Tensor((), dtype="int64") = cls.count(k1, x)
#         return y
