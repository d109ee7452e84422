# The results of data-dependent operators, parameters of unknown size, tuples and scalars are matched with new symbols.
# test opt --passes=MatchUnknownShapes

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A parameter, a data-dependent result, and the results computed from them; each is matched once.
    @R.function
    def data_dependent(
        x: R.Tensor(("n",), "int64"), w: R.Tensor(ndim=2, dtype="float32")
    ) -> R.Tuple(R.Tensor(ndim=1, dtype="int64"), R.Tensor(ndim=2, dtype="float32")):
        n = T.int64()
        with R.dataflow():
            u = R.unique(x)
            y = R.add(u, u)
            z = R.concat((y, u), axis=0)
            v = R.exp(w)
            v2 = R.multiply(v, w)
            v3 = R.matmul(R.permute_dims(v2), v)
            R.output(z, v3)
        return (z, v3)

    # Whole tuples, scalars, and the indices of nonzero elements.
    @R.function
    def tuples(
        x: R.Tensor(("n",), "int64"), t: R.Tuple(R.Tensor(ndim=1, dtype="int64"), R.Tensor((), "int64"))
    ) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        z = R.nonzero(x)
        row = R.sum(z, axis=0)
        pair = (row, t[0])
        joined = R.concat(pair, axis=0)
        return R.add(joined, t[1])

    # A shape value, and tensors of that shape.
    @R.function
    def shapes(x: R.Tensor((1, 1), "float32"), s: R.Shape(ndim=2)) -> R.Tensor(ndim=2, dtype="float32"):
        y = R.broadcast_to(x, s)
        z = R.zeros(s, "float32")
        return R.add(y, z)

    # A declared type that is less specific than the value's type needs no check.
    @R.function
    def wider(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(ndim=2, dtype="float32"):
        n = T.int64()
        y: R.Tensor(ndim=2, dtype="float32") = R.exp(x)
        z = R.negative(y)
        return z

    # Views of tensors of unknown shape.
    @R.function
    def views(x: R.Tensor(ndim=2, dtype="float32")) -> R.Tensor(ndim=1, dtype="float32"):
        y = R.flatten(x)
        z = R.expand_dims(y, axis=1)
        return R.squeeze(z, axis=1)

    # The value of an integer scalar is matched to a symbol.
    @R.function
    def scalars(k: R.Prim("int64"), x: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
        y = R.add(x, k)
        z = R.where(R.greater(k, R.const(2, "int64")), y, x)
        return z

    # All shapes are known: nothing changes.
    @R.function
    def known(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.int64()
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def data_dependent(x: R.Tensor(("n",), dtype="int64"), w: R.Tensor(dtype="float32", ndim=2)) -> R.Tuple(R.Tensor(dtype="int64", ndim=1), R.Tensor(dtype="float32", ndim=2)):
#         n = T.int64()
#         w_0 = T.int64()
#         w_1 = T.int64()
#         u_0 = T.int64()
#         w1: R.Tensor((w_0, w_1), dtype="float32") = R.match_cast(w, R.Tensor((w_0, w_1), dtype="float32"))
#         with R.dataflow():
#             u: R.Tensor(dtype="int64", ndim=1) = R.unique(x)
#             u1: R.Tensor((u_0,), dtype="int64") = R.match_cast(u, R.Tensor((u_0,), dtype="int64"))
#             y: R.Tensor((u_0,), dtype="int64") = R.add(u1, u1)
#             z: R.Tensor((u_0 * 2,), dtype="int64") = R.concat((y, u1))
#             v: R.Tensor((w_0, w_1), dtype="float32") = R.exp(w1)
#             v2: R.Tensor((w_0, w_1), dtype="float32") = R.multiply(v, w1)
#             lv: R.Tensor((w_1, w_0), dtype="float32") = R.permute_dims(v2)
#             v3: R.Tensor((w_1, w_1), dtype="float32") = R.matmul(lv, v)
#             R.output(z, v3)
#         return (z, v3)
#
#     @R.function
#     def tuples(x: R.Tensor(("n",), dtype="int64"), t: R.Tuple(R.Tensor(dtype="int64", ndim=1), R.Tensor((), dtype="int64"))) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         z_0 = T.int64()
#         z_1 = T.int64()
#         pair_1_0 = T.int64()
#         z: R.Tensor(dtype="int64", ndim=2) = R.nonzero(x)
#         z1: R.Tensor((z_0, z_1), dtype="int64") = R.match_cast(z, R.Tensor((z_0, z_1), dtype="int64"))
#         row: R.Tensor((z_1,), dtype="int64") = R.sum(z1, axis=[0])
#         gv: R.Tensor(dtype="int64", ndim=1) = t[0]
#         pair: R.Tuple(R.Tensor((z_1,), dtype="int64"), R.Tensor(dtype="int64", ndim=1)) = (row, gv)
#         pair1: R.Tuple(R.Tensor((z_1,), dtype="int64"), R.Tensor((pair_1_0,), dtype="int64")) = R.match_cast(pair, R.Tuple(R.Tensor((z_1,), dtype="int64"), R.Tensor((pair_1_0,), dtype="int64")))
#         joined: R.Tensor((pair_1_0 + z_1,), dtype="int64") = R.concat(pair1)
#         gv1: R.Tensor((), dtype="int64") = t[1]
#         gv2: R.Tensor((pair_1_0 + z_1,), dtype="int64") = R.add(joined, gv1)
#         return gv2
#
#     @R.function
#     def shapes(x: R.Tensor((1, 1), dtype="float32"), s: R.Shape(ndim=2)) -> R.Tensor(dtype="float32", ndim=2):
#         s_0 = T.int64()
#         s_1 = T.int64()
#         s1: R.Shape([s_0, s_1]) = R.match_cast(s, R.Shape([s_0, s_1]))
#         y: R.Tensor((s_0, s_1), dtype="float32") = R.broadcast_to(x, s1)
#         z: R.Tensor((s_0, s_1), dtype="float32") = R.zeros(s1)
#         gv: R.Tensor((s_0, s_1), dtype="float32") = R.add(y, z)
#         return gv
#
#     @R.function
#     def wider(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(dtype="float32", ndim=2):
#         n = T.int64()
#         y: R.Tensor((n, 2), dtype="float32") = R.exp(x)
#         z: R.Tensor((n, 2), dtype="float32") = R.negative(y)
#         return z
#
#     @R.function
#     def views(x: R.Tensor(dtype="float32", ndim=2)) -> R.Tensor(dtype="float32", ndim=1):
#         x_0 = T.int64()
#         x_1 = T.int64()
#         x1: R.Tensor((x_0, x_1), dtype="float32") = R.match_cast(x, R.Tensor((x_0, x_1), dtype="float32"))
#         y: R.Tensor((x_0 * x_1,), dtype="float32") = R.flatten(x1)
#         z: R.Tensor((x_0 * x_1, 1), dtype="float32") = R.expand_dims(y, axis=[1])
#         gv: R.Tensor((x_0 * x_1,), dtype="float32") = R.squeeze(z, axis=[1])
#         return gv
#
#     @R.function
#     def scalars(k: R.Prim("int64"), x: R.Tensor(dtype="int64", ndim=1)) -> R.Tensor(dtype="int64", ndim=1):
#         k_value = T.int64()
#         x_0 = T.int64()
#         k1: R.Prim(value=k_value) = R.match_cast(k, R.Prim(value=k_value))
#         x1: R.Tensor((x_0,), dtype="int64") = R.match_cast(x, R.Tensor((x_0,), dtype="int64"))
#         y: R.Tensor((x_0,), dtype="int64") = R.add(x1, k1)
#         gv: R.Tensor((), dtype="bool") = R.greater(k1, R.const(2, "int64"))
#         z: R.Tensor((x_0,), dtype="int64") = R.where(gv, y, x1)
#         return z
#
#     @R.function
#     def known(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         gv: R.Tensor((n, 2), dtype="float32") = R.exp(x)
#         return gv
