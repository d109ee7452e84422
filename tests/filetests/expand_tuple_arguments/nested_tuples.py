# Nested tuples become one parameter for each tensor in them; an empty tuple becomes none.
# test opt --passes=ExpandTupleArguments

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def total(t: R.Tuple(R.Tensor(("k",), "float32"), R.Tuple(R.Tensor(("k",), "float32"), R.Tuple())), s: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
        a = t[0]
        b = t[1]
        c = b[0]
        return R.add(R.add(a, c), s)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), t: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n",), "float32"), R.Tuple()))) -> R.Tensor(("n",), "float32"):
        cls = Module
        with R.dataflow():
            y = cls.total((x, (x, R.tuple())), x)
            z = cls.total(t, y)
            R.output(z)
        return z

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def total(t_0: R.Tensor(("k",), dtype="float32"), t_1_0: R.Tensor(("k",), dtype="float32"), s: R.Tensor(("k",), dtype="float32")) -> R.Tensor(("k",), dtype="float32"):
#         k = T.int64()
#         gv: R.Tensor((k,), dtype="float32") = R.add(t_0, t_1_0)
#         gv1: R.Tensor((k,), dtype="float32") = R.add(gv, s)
#         return gv1
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), t: R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tuple))) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             y: R.Tensor((n,), dtype="float32") = cls.total(x, x, x)
#             t_0: R.Tensor((n,), dtype="float32") = t[0]
#             t_1: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tuple) = t[1]
#             t_1_0: R.Tensor((n,), dtype="float32") = t_1[0]
#             t_1_1: R.Tuple = t_1[1]
#             z: R.Tensor((n,), dtype="float32") = cls.total(t_0, t_1_0, y)
#             R.output(z)
#         return z
