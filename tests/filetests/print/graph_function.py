# The parameter types, bindings and results of a graph function.
# test print

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor(("n", 4), "float32"),
        s: R.Shape(["n", "m"]),
        k: R.Prim("int64"),
        t: R.Tuple(R.Tensor((2,), "int64"), R.Tensor(ndim=2)),
        f: R.Callable((R.Tensor(("p",), "float32"),), R.Tensor(("p",), "float32"), True),
        o: R.Object,
    ) -> R.Object:
        n, m = T.int64(), T.int64()
        with R.dataflow():
            a = R.add(x, x)
            b = R.nn.softmax(a, axis=-1)
            c = R.permute_dims(b, axes=[1, 0])
            d = t[0]
            e = R.const(2.5, "float32")
            g = R.multiply(c, e)
            R.output(g, d)
        h = R.match_cast(o, R.Tensor((n * 2, m + 1), "float32"))
        i = R.shape([n * m, n // 2, m % 3])
        j = R.prim_value(n - m)
        return (g, d, h, i, j, R.str("text"), R.dtype("float16"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 4), dtype="float32"), s: R.Shape(["n", "m"]), k: R.Prim("int64"), t: R.Tuple(R.Tensor((2,), dtype="int64"), R.Tensor(ndim=2)), f: R.Callable((R.Tensor(("p",), dtype="float32"),), R.Tensor(("p",), dtype="float32"), True), o: R.Object) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         p = T.int64()
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = R.add(x, x)
#             b: R.Tensor((n, 4), dtype="float32") = R.nn.softmax(a)
#             c: R.Tensor((4, n), dtype="float32") = R.permute_dims(b, axes=[1, 0])
#             d: R.Tensor((2,), dtype="int64") = t[0]
#             e: R.Tensor((), dtype="float32") = R.const(2.5, "float32")
#             g: R.Tensor((4, n), dtype="float32") = R.multiply(c, e)
#             R.output(d, g)
#         h: R.Tensor((n * 2, m + 1), dtype="float32") = R.match_cast(o, R.Tensor((n * 2, m + 1), dtype="float32"))
#         i: R.Shape([m * n, n // 2, m % 3]) = R.shape([m * n, n // 2, m % 3])
#         j: R.Prim(value=n - m) = R.prim_value(n - m)
#         return (g, d, h, i, j, R.str("text"), R.dtype("float16"))
