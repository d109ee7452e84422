# Adjacent calls of one backend become a region; a call of another backend starts a new one.
# test opt --passes=MergeCompositeFunctions
@I.ir_module
class Module:
    @R.function(private=True)
    def exp(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"Composite": "one.exp", "Primitive": 1})
        n = T.int64()
        with R.dataflow():
            gv = R.exp(x)
            R.output(gv)
        return gv

    @R.function(private=True)
    def add(x: R.Tensor(("n", 4), "float32"), y: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"Composite": "one.add", "Primitive": 1})
        n = T.int64()
        with R.dataflow():
            gv = R.add(x, y)
            R.output(gv)
        return gv

    @R.function(private=True)
    def tanh(x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        R.func_attr({"Composite": "two.tanh", "Primitive": 1})
        n = T.int64()
        with R.dataflow():
            gv = R.tanh(x)
            R.output(gv)
        return gv

    @R.function
    def chain(x: R.Tensor(("n", 4), "float32")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 4), "float32") = cls.exp(x)
            b: R.Tensor((n, 4), "float32") = cls.add(a, x)
            c: R.Tensor((n, 4), "float32") = cls.tanh(b)
            R.output(c)
        return c

    # A path that leaves the region and returns to it prevents the merge, which would create a cycle.
    @R.function
    def detour(x: R.Tensor(("n", 4), "float32")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 4), "float32") = cls.exp(x)
            b: R.Tensor((n, 4), "float32") = cls.tanh(a)
            c: R.Tensor((n, 4), "float32") = cls.add(a, b)
            R.output(c)
        return c

    # Two values are read outside the region; the reader of the first one moves after the region.
    @R.function
    def two_results(x: R.Tensor(("n", 4), "float32")):
        cls = Module
        n = T.int64()
        with R.dataflow():
            a: R.Tensor((n, 4), "float32") = cls.exp(x)
            s = R.sqrt(a)
            b: R.Tensor((n, 4), "float32") = cls.add(a, x)
            R.output(s, b)
        return (s, b)

    @R.function
    def outside(x: R.Tensor(("n", 4), "float32")):
        cls = Module
        n = T.int64()
        a: R.Tensor((n, 4), "float32") = cls.exp(x)
        b: R.Tensor((n, 4), "float32") = cls.exp(a)
        return b

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def chain(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             b: R.Tensor((n, 4), dtype="float32") = cls.fused_one_region(x)
#             c: R.Tensor((n, 4), dtype="float32") = cls.tanh_two(b)
#             R.output(c)
#         return c
#
#     @R.function
#     def detour(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = cls.exp_one(x)
#             b: R.Tensor((n, 4), dtype="float32") = cls.tanh_two(a)
#             c: R.Tensor((n, 4), dtype="float32") = cls.add_one(a, b)
#             R.output(c)
#         return c
#
#     @R.function
#     def two_results(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tuple(R.Tensor(("n", 4), dtype="float32"), R.Tensor(("n", 4), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             region: R.Tuple(R.Tensor((n, 4), dtype="float32"), R.Tensor((n, 4), dtype="float32")) = cls.fused_one_region1(x)
#             a: R.Tensor((n, 4), dtype="float32") = region[0]
#             s: R.Tensor((n, 4), dtype="float32") = R.sqrt(a)
#             b: R.Tensor((n, 4), dtype="float32") = region[1]
#             R.output(s, b)
#         return (s, b)
#
#     @R.function
#     def outside(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n, 4), dtype="float32") = cls.exp_one(x)
#         b: R.Tensor((n, 4), dtype="float32") = cls.exp_one(a)
#         return b
#
#     @R.function(private=True)
#     def fused_one_region(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x1: R.Tensor(("n1", 4), dtype="float32")) -> R.Tensor(("n1", 4), dtype="float32"):
#             n1 = T.int64()
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             with R.dataflow():
#                 gv: R.Tensor((n1, 4), dtype="float32") = R.exp(x1)
#                 R.output(gv)
#             return gv
#         @R.function
#         def add(x2: R.Tensor(("n2", 4), dtype="float32"), y: R.Tensor(("n2", 4), dtype="float32")) -> R.Tensor(("n2", 4), dtype="float32"):
#             n2 = T.int64()
#             R.func_attr({"Composite": "one.add", "Primitive": 1})
#             with R.dataflow():
#                 gv1: R.Tensor((n2, 4), dtype="float32") = R.add(x2, y)
#                 R.output(gv1)
#             return gv1
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = exp(x)
#             b: R.Tensor((n, 4), dtype="float32") = add(a, x)
#             R.output(b)
#         return b
#
#     @R.function(private=True)
#     def tanh_two(b: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Codegen": "two"})
#         @R.function
#         def tanh(x: R.Tensor(("n1", 4), dtype="float32")) -> R.Tensor(("n1", 4), dtype="float32"):
#             n1 = T.int64()
#             R.func_attr({"Composite": "two.tanh", "Primitive": 1})
#             with R.dataflow():
#                 gv: R.Tensor((n1, 4), dtype="float32") = R.tanh(x)
#                 R.output(gv)
#             return gv
#         with R.dataflow():
#             c: R.Tensor((n, 4), dtype="float32") = tanh(b)
#             R.output(c)
#         return c
#
#     @R.function(private=True)
#     def exp_one(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x1: R.Tensor(("n1", 4), dtype="float32")) -> R.Tensor(("n1", 4), dtype="float32"):
#             n1 = T.int64()
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             with R.dataflow():
#                 gv: R.Tensor((n1, 4), dtype="float32") = R.exp(x1)
#                 R.output(gv)
#             return gv
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = exp(x)
#             R.output(a)
#         return a
#
#     @R.function(private=True)
#     def add_one(a: R.Tensor(("n", 4), dtype="float32"), b: R.Tensor(("n", 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def add(x: R.Tensor(("n1", 4), dtype="float32"), y: R.Tensor(("n1", 4), dtype="float32")) -> R.Tensor(("n1", 4), dtype="float32"):
#             n1 = T.int64()
#             R.func_attr({"Composite": "one.add", "Primitive": 1})
#             with R.dataflow():
#                 gv: R.Tensor((n1, 4), dtype="float32") = R.add(x, y)
#                 R.output(gv)
#             return gv
#         with R.dataflow():
#             c: R.Tensor((n, 4), dtype="float32") = add(a, b)
#             R.output(c)
#         return c
#
#     @R.function(private=True)
#     def fused_one_region1(x: R.Tensor(("n", 4), dtype="float32")) -> R.Tuple(R.Tensor(("n", 4), dtype="float32"), R.Tensor(("n", 4), dtype="float32")):
#         n = T.int64()
#         R.func_attr({"Codegen": "one"})
#         @R.function
#         def exp(x1: R.Tensor(("n1", 4), dtype="float32")) -> R.Tensor(("n1", 4), dtype="float32"):
#             n1 = T.int64()
#             R.func_attr({"Composite": "one.exp", "Primitive": 1})
#             with R.dataflow():
#                 gv: R.Tensor((n1, 4), dtype="float32") = R.exp(x1)
#                 R.output(gv)
#             return gv
#         @R.function
#         def add(x2: R.Tensor(("n2", 4), dtype="float32"), y: R.Tensor(("n2", 4), dtype="float32")) -> R.Tensor(("n2", 4), dtype="float32"):
#             n2 = T.int64()
#             R.func_attr({"Composite": "one.add", "Primitive": 1})
#             with R.dataflow():
#                 gv1: R.Tensor((n2, 4), dtype="float32") = R.add(x2, y)
#                 R.output(gv1)
#             return gv1
#         with R.dataflow():
#             a: R.Tensor((n, 4), dtype="float32") = exp(x)
#             b: R.Tensor((n, 4), dtype="float32") = add(a, x)
#             R.output(a, b)
#         return (a, b)
