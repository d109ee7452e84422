# Attention weights that are also a result keep the pattern unfused, under an alias too, so that they are computed once.
# test opt --passes=OffloadComposites,DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def weights(s: R.Tensor(("b", 2, "n", 3), "float32"), k: R.Tensor(("b", 2, "m", 3), "float32")) -> R.Tuple(R.Tensor(("b", 2, "n", 3), "float32"), R.Tensor(("b", 2, "n", "m"), "float32")):
        w = R.nn.softmax(R.matmul(s, R.permute_dims(k, [0, 1, 3, 2])), axis=-1)
        y = R.matmul(w, k)
        return (y, w)

    @R.function
    def alias(s: R.Tensor(("b", 2, "n", 3), "float32"), k: R.Tensor(("b", 2, "m", 3), "float32")) -> R.Tuple(R.Tensor(("b", 2, "n", 3), "float32"), R.Tensor(("b", 2, "n", "m"), "float32")):
        w = R.nn.softmax(R.matmul(s, R.permute_dims(k, [0, 1, 3, 2])), axis=-1)
        u = w
        y = R.matmul(u, k)
        return (y, w)

    # Scale factors are not merged if their product overflows float32.
    @R.function
    def factors(q: R.Tensor(("b", 2, "n", 3), "float32"), k: R.Tensor(("b", 2, "m", 3), "float32")) -> R.Tensor(("b", 2, "n", 3), "float32"):
        low = R.multiply(q, R.const(1e-30, "float32"))
        s = R.multiply(R.multiply(R.matmul(low, R.permute_dims(k, [0, 1, 3, 2])), R.const(1e20, "float32")), R.const(1e20, "float32"))
        y = R.matmul(R.nn.softmax(s, axis=-1), k)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def weights(s: R.Tensor(("b", 2, "n", 3), dtype="float32"), k: R.Tensor(("b", 2, "m", 3), dtype="float32")) -> R.Tuple(R.Tensor(("b", 2, "n", 3), dtype="float32"), R.Tensor(("b", 2, "n", "m"), dtype="float32")):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         gv: R.Tensor((b, 2, 3, m), dtype="float32") = R.permute_dims(k, axes=[0, 1, 3, 2])
#         gv1: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(s, gv)
#         w: R.Tensor((b, 2, n, m), dtype="float32") = R.nn.softmax(gv1)
#         y: R.Tensor((b, 2, n, 3), dtype="float32") = R.matmul(w, k)
#         return (y, w)
#
#     @R.function
#     def alias(s: R.Tensor(("b", 2, "n", 3), dtype="float32"), k: R.Tensor(("b", 2, "m", 3), dtype="float32")) -> R.Tuple(R.Tensor(("b", 2, "n", 3), dtype="float32"), R.Tensor(("b", 2, "n", "m"), dtype="float32")):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         gv: R.Tensor((b, 2, 3, m), dtype="float32") = R.permute_dims(k, axes=[0, 1, 3, 2])
#         gv1: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(s, gv)
#         w: R.Tensor((b, 2, n, m), dtype="float32") = R.nn.softmax(gv1)
#         u: R.Tensor((b, 2, n, m), dtype="float32") = w
#         y: R.Tensor((b, 2, n, 3), dtype="float32") = R.matmul(u, k)
#         return (y, w)
#
#     @R.function
#     def factors(q: R.Tensor(("b", 2, "n", 3), dtype="float32"), k: R.Tensor(("b", 2, "m", 3), dtype="float32")) -> R.Tensor(("b", 2, "n", 3), dtype="float32"):
#         b = T.int64()
#         n = T.int64()
#         m = T.int64()
#         low: R.Tensor((b, 2, n, 3), dtype="float32") = R.multiply(q, R.const(1e-30, "float32"))
#         gv: R.Tensor((b, 2, 3, m), dtype="float32") = R.permute_dims(k, axes=[0, 1, 3, 2])
#         gv1: R.Tensor((b, 2, n, m), dtype="float32") = R.matmul(low, gv)
#         gv2: R.Tensor((b, 2, n, m), dtype="float32") = R.multiply(gv1, R.const(1e20, "float32"))
#         s: R.Tensor((b, 2, n, m), dtype="float32") = R.multiply(gv2, R.const(1e20, "float32"))
#         gv3: R.Tensor((b, 2, n, m), dtype="float32") = R.nn.softmax(s)
#         y: R.Tensor((b, 2, n, 3), dtype="float32") = R.matmul(gv3, k)
#         return y
