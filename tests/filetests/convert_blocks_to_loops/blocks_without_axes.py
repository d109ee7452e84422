# A block without axes, and one in a function of scalars, leave just their statements.
# test opt --passes=ConvertBlocksToLoops

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def negate(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
        with T.block("b"):
            B[()] = T.float32(0) - A[()]

    @R.function
    def main(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        cls = Module
        return R.call_tir(cls.negate, (x,), out_sinfo=R.Tensor((), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def negate(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
#         B[()] = T.float32(0.0) - A[()]
#
#     @R.function
#     def main(x: R.Tensor((), dtype="float32")) -> R.Tensor((), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((), dtype="float32") = R.call_tir(cls.negate, (x,), out_sinfo=R.Tensor((), dtype="float32"))
#         return gv
