# Captured variables; a captured symbol that is in no captured variable's type, and one that is.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n", "m"), "float32"), R.Shape(["n", "m"])):
        n = T.int64()
        m = T.int64()

        @R.function
        def double(z: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(z, z)

        @R.function
        def scale(z: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.multiply(z, x)

        @R.function
        def spread(z: R.Tensor((n, 1), "float32")) -> R.Tensor((n, m), "float32"):
            return R.broadcast_to(z, R.shape([n, m]))

        a = double(x)
        b = scale(a)
        c = spread(R.reshape(b, R.shape([n, 1])))
        return (b, c, R.shape([n, m]))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("m",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n", "m"), dtype="float32"), R.Shape(["n", "m"])):
#         n = T.int64()
#         m = T.int64()
#         cls = Module
#         a: R.Tensor((n,), dtype="float32") = cls.main_double(x, R.prim_value(n))
#         b: R.Tensor((n,), dtype="float32") = cls.main_scale(a, x)
#         gv3: R.Tensor((n, 1), dtype="float32") = R.reshape(b, R.shape([n, 1]))
#         c: R.Tensor((n, m), dtype="float32") = cls.main_spread(gv3, R.prim_value(n), R.prim_value(m))
#         return (b, c, R.shape([n, m]))
#
#     @R.function(private=True)
#     def main_double(z: R.Tensor(("n",), dtype="float32"), n_value: R.Prim(value="n")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 1})
#         gv: R.Tensor((n,), dtype="float32") = R.add(z, z)
#         return gv
#
#     @R.function(private=True)
#     def main_scale(z1: R.Tensor(("n",), dtype="float32"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"num_captured": 1})
#         gv1: R.Tensor((n,), dtype="float32") = R.multiply(z1, x)
#         return gv1
#
#     @R.function(private=True)
#     def main_spread(z2: R.Tensor(("n", 1), dtype="float32"), n_value: R.Prim(value="n"), m_value: R.Prim(value="m")) -> R.Tensor(("n", "m"), dtype="float32"):
#         n = T.int64()
#         m = T.int64()
#         R.func_attr({"num_captured": 2})
#         gv2: R.Tensor((n, m), dtype="float32") = R.broadcast_to(z2, R.shape([n, m]))
#         return gv2
