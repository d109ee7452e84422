# The call is in the body of a loop, whose state is one of the fields.
# test opt --passes=RemoveUnusedOutputs

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function(private=True)
    def step(a: R.Tensor((), "int64")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((), "int64")):
        return (R.add(a, R.const(3, "int64")), R.multiply(a, a))

    @R.function
    def main(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        cls = Module
        y = x
        for i in R.range(4):
            t = cls.step(y)
            y = t[0]
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(private=True)
#     def step(a: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         gv: R.Tensor((), dtype="int64") = R.add(a, R.const(3, "int64"))
#         gv1: R.Tensor((), dtype="int64") = R.multiply(a, a)
#         return gv
#
#     @R.function
#     def main(x: R.Tensor((), dtype="int64")) -> R.Tensor((), dtype="int64"):
#         cls = Module
#         y: R.Tensor((), dtype="int64") = x
#         @R.function
#         def cond(i1_1: R.Prim(value="i"), y3: R.Tensor((), dtype="int64")) -> R.Prim("bool", value="i <= 3"):
#             i = T.int64()
#             return R.prim_value(T.bool(i <= 3))
#         @R.function
#         def body(i2: R.Prim(value="i1"), y1: R.Tensor((), dtype="int64")) -> R.Tuple(R.Prim(value="i1 + 1"), R.Tensor((), dtype="int64")):
#             i1 = T.int64()
#             t: R.Tensor((), dtype="int64") = cls.step(y1)
#             y2: R.Tensor((), dtype="int64") = t
#             return (R.prim_value(i1 + 1), y2)
#         gv: R.Tuple(R.Prim("int64"), R.Tensor((), dtype="int64")) = R.while_loop(cond, body, R.prim_value(0), y)
#         y4: R.Tensor((), dtype="int64") = gv[1]
#         return y4
