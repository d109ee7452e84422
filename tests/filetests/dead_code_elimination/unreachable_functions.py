# Private functions that only dead bindings call are removed.
# test opt --passes=DeadCodeElimination

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(private=True)
    def deep(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        return R.exp(x)

    @R.function(private=True)
    def used_by_dead(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        return cls.deep(x)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        dead = cls.used_by_dead(x)

        @R.function
        def local(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            unused = R.sin(a)
            return R.add(a, x)

        @R.function
        def dead_local(a: R.Tensor((n,), "float32")) -> R.Tensor((n,), "float32"):
            return R.add(a, dead)

        return local(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         @R.function
#         def local(a: R.Tensor((n,), dtype="float32")) -> R.Tensor((n,), dtype="float32"):
#             gv: R.Tensor((n,), dtype="float32") = R.add(a, x)
#             return gv
#         gv2: R.Tensor((n,), dtype="float32") = local(x)
#         return gv2
