# Unread parameters are removed, and sizes that only they define become parameters if all callers know them.
# test opt --passes=RemoveUnusedParameters,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def leaf(a: R.Tensor(("k",), "float32"), unused: R.Tensor(("j",), "float32"), size: R.Tensor(("m",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        m = T.int64()
        z = R.zeros(R.shape([m]), "float32")
        return R.concat((a, z), axis=0)

    @R.function(private=True)
    def middle(a: R.Tensor(("k",), "float32"), b: R.Tensor(("j",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        c = R.exp(a)
        return cls.leaf(c, b, c)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        dead = R.sin(y)
        return cls.middle(x, dead)

    @R.function(private=True)
    def open(size: R.Tensor(("m",), "float32")) -> R.Tensor(("m",), "float32"):
        m = T.int64()
        return R.zeros(R.shape([m]), "float32")

    @R.function
    def data(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        cls = Module
        some = R.unique(x)
        return cls.open(some)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def leaf(a: R.Tensor(("k",), dtype="float32"), param_m: R.Prim(value="m")) -> R.Tensor(dtype="float32", ndim=1):
#         k = T.int64()
#         m = T.int64()
#         z: R.Tensor((m,), dtype="float32") = R.zeros(R.shape([m]))
#         gv: R.Tensor((k + m,), dtype="float32") = R.concat((a, z))
#         return gv
#
#     @R.function(private=True)
#     def middle(a: R.Tensor(("k",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         k = T.int64()
#         cls = Module
#         c: R.Tensor((k,), dtype="float32") = R.exp(a)
#         gv: R.Tensor(dtype="float32", ndim=1) = cls.leaf(c, R.prim_value(k))
#         return gv
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         gv: R.Tensor(dtype="float32", ndim=1) = cls.middle(x)
#         return gv
#
#     @R.function(private=True)
#     def open(size: R.Tensor(("m",), dtype="float32")) -> R.Tensor(("m",), dtype="float32"):
#         m = T.int64()
#         gv: R.Tensor((m,), dtype="float32") = R.zeros(R.shape([m]))
#         return gv
#
#     @R.function
#     def data(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(dtype="float32", ndim=1):
#         n = T.int64()
#         cls = Module
#         some: R.Tensor(dtype="float32", ndim=1) = R.unique(x)
#         gv: R.Tensor(dtype="float32", ndim=1) = cls.open(some)
#         return gv
