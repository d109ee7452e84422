# Conditions and bodies of loops are lifted, also of nested loops; their captured values become parameters.
# test opt --passes=LambdaLift

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A loop whose functions capture tensors, with two state values, one of which grows in each iteration.
    @R.function
    def main(x: R.Tensor((1, "n"), "float32"), w: R.Tensor(("n",), "float32"), k: R.Tensor((), "int64")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor(ndim=2, dtype="float32")):
        n = T.int64()

        @R.function
        def cond(i: R.Tensor((), "int64"), cache: R.Tensor(("m", n), "float32")) -> R.Tensor((), "bool"):
            m = T.int64()
            return R.less(i, k)

        @R.function
        def body(i: R.Tensor((), "int64"), cache: R.Tensor(("m", n), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor(("m + 1", n), "float32")):
            m = T.int64()
            row = R.multiply(R.reshape(w, R.shape([1, n])), x)
            return (R.add(i, R.const(1, "int64")), R.concat([cache, row], axis=0))

        return R.while_loop(cond, body, R.const(0, "int64"), x)

    # A loop inside a loop's body; a single state value; zero iterations.
    @R.function
    def nested(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64")):
        @R.function
        def below(i: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
            return R.less(i, R.const(10, "int64"))

        @R.function
        def more(i: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
            @R.function
            def odd(j: R.Tensor((), "int64")) -> R.Tensor((), "bool"):
                return R.less(j, R.add(i, R.const(3, "int64")))

            @R.function
            def step(j: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
                return R.add(j, R.const(2, "int64"))

            return R.while_loop(odd, step, i)

        a = R.while_loop(below, more, R.const(0, "int64"))
        b = R.while_loop(below, more, R.const(99, "int64"))
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((1, "n"), dtype="float32"), w: R.Tensor(("n",), dtype="float32"), k: R.Tensor((), dtype="int64")) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor(dtype="float32", ndim=2)):
#         n = T.int64()
#         m = T.int64()
#         m1 = T.int64()
#         cls = Module
#         cond: R.Callable((R.Tensor((), dtype="int64"), R.Tensor((m, n), dtype="float32")), R.Tensor((), dtype="bool"), True) = R.make_closure(cls.main_cond, (k, R.prim_value(n)))
#         body: R.Callable((R.Tensor((), dtype="int64"), R.Tensor((m1, n), dtype="float32")), R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((m1 + 1, n), dtype="float32")), True) = R.make_closure(cls.main_body, (w, x))
#         gv4: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor(dtype="float32", ndim=2)) = R.while_loop(cond, body, R.const(0, "int64"), x)
#         return gv4
#
#     @R.function
#     def nested(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor((), dtype="int64")):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((), dtype="int64") = R.while_loop(cls.nested_below, cls.nested_more, R.const(0, "int64"))
#         b: R.Tensor((), dtype="int64") = R.while_loop(cls.nested_below, cls.nested_more, R.const(99, "int64"))
#         return (a, b)
#
#     @R.function(private=True)
#     def main_cond(i: R.Tensor((), dtype="int64"), cache: R.Tensor(("m", "n"), dtype="float32"), k: R.Tensor((), dtype="int64"), n_value: R.Prim(value="n")) -> R.Tensor((), dtype="bool"):
#         m = T.int64()
#         n = T.int64()
#         R.func_attr({"num_captured": 2})
#         gv: R.Tensor((), dtype="bool") = R.less(i, k)
#         return gv
#
#     @R.function(private=True)
#     def main_body(i1: R.Tensor((), dtype="int64"), cache1: R.Tensor(("m", "n"), dtype="float32"), w: R.Tensor(("n",), dtype="float32"), x: R.Tensor((1, "n"), dtype="float32")) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor(("m + 1", "n"), dtype="float32")):
#         m = T.int64()
#         n = T.int64()
#         R.func_attr({"num_captured": 2})
#         gv1: R.Tensor((1, n), dtype="float32") = R.reshape(w, R.shape([1, n]))
#         row: R.Tensor((1, n), dtype="float32") = R.multiply(gv1, x)
#         gv2: R.Tensor((), dtype="int64") = R.add(i1, R.const(1, "int64"))
#         gv3: R.Tensor((m + 1, n), dtype="float32") = R.concat((cache1, row))
#         return (gv2, gv3)
#
#     @R.function(private=True)
#     def nested_below(i: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="bool"):
#         gv: R.Tensor((), dtype="bool") = R.less(i, R.const(10, "int64"))
#         return gv
#
#     @R.function(private=True)
#     def nested_more(i1: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         cls = Module
#         odd: R.Callable((R.Tensor((), dtype="int64"),), R.Tensor((), dtype="bool"), True) = R.make_closure(cls.nested_more_odd, (i1,))
#         gv4: R.Tensor((), dtype="int64") = R.while_loop(odd, cls.nested_more_step, i1)
#         return gv4
#
#     @R.function(private=True)
#     def nested_more_odd(j: R.Tensor((), dtype="int64"), i1: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="bool"):
#         R.func_attr({"num_captured": 1})
#         gv1: R.Tensor((), dtype="int64") = R.add(i1, R.const(3, "int64"))
#         gv2: R.Tensor((), dtype="bool") = R.less(j, gv1)
#         return gv2
#
#     @R.function(private=True)
#     def nested_more_step(j1: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         gv3: R.Tensor((), dtype="int64") = R.add(j1, R.const(2, "int64"))
#         return gv3
