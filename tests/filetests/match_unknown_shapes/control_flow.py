# Values that branches, local functions and loops define or read are matched once, where they are defined.
# test opt --passes=MatchUnknownShapes

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Branches: a value defined outside is matched once, outside.
    @R.function
    def branches(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        u = R.unique(x)
        if c:
            y = R.add(u, u)
        else:
            v = R.unique(u)
            y = R.negative(v)
        return R.multiply(y, y)

    # A local function: its parameter and its captured value are matched.
    @R.function
    def local(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        u = R.unique(x)

        @R.function
        def f(y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
            return R.concat((R.add(y, y), R.negative(u)), axis=0)

        return R.negative(f(u))

    # A loop whose state has unknown dims, and its result.
    @R.function
    def loop(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def short(i: R.Tensor((), "int64"), y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor((), "bool"):
            return R.less(i, R.const(3, "int64"))

        @R.function
        def step(i: R.Tensor((), "int64"), y: R.Tensor(ndim=1, dtype="int64")) -> R.Tuple(
            R.Tensor((), "int64"), R.Tensor(ndim=1, dtype="int64")
        ):
            return (R.add(i, R.const(1, "int64")), R.concat((y, R.add(y, i)), axis=0))

        state = R.while_loop(short, step, R.const(0, "int64"), x)
        return R.negative(state[1])

    @R.function
    def grow(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        y = x
        for i in R.range(3):
            y = R.concat((y, y), axis=0)
        return R.add(y, R.const(1, "int64"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def branches(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         u_0 = T.int64()
#         v_0 = T.int64()
#         y_0 = T.int64()
#         u: R.Tensor(dtype="int64", ndim=1) = R.unique(x)
#         u1: R.Tensor((u_0,), dtype="int64") = R.match_cast(u, R.Tensor((u_0,), dtype="int64"))
#         if c:
#             gv: R.Tensor((u_0,), dtype="int64") = R.add(u1, u1)
#             y: R.Tensor(dtype="int64", ndim=1) = gv
#         else:
#             v: R.Tensor(dtype="int64", ndim=1) = R.unique(u)
#             v1: R.Tensor((v_0,), dtype="int64") = R.match_cast(v, R.Tensor((v_0,), dtype="int64"))
#             gv1: R.Tensor((v_0,), dtype="int64") = R.negative(v1)
#             y: R.Tensor(dtype="int64", ndim=1) = gv1
#         y1: R.Tensor((y_0,), dtype="int64") = R.match_cast(y, R.Tensor((y_0,), dtype="int64"))
#         gv2: R.Tensor((y_0,), dtype="int64") = R.multiply(y1, y1)
#         return gv2
#
#     @R.function
#     def local(x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         u_0 = T.int64()
#         gv3_0 = T.int64()
#         u: R.Tensor(dtype="int64", ndim=1) = R.unique(x)
#         u1: R.Tensor((u_0,), dtype="int64") = R.match_cast(u, R.Tensor((u_0,), dtype="int64"))
#         @R.function
#         def f(y: R.Tensor(dtype="int64", ndim=1)) -> R.Tensor(dtype="int64", ndim=1):
#             y_0 = T.int64()
#             y1: R.Tensor((y_0,), dtype="int64") = R.match_cast(y, R.Tensor((y_0,), dtype="int64"))
#             gv: R.Tensor((y_0,), dtype="int64") = R.add(y1, y1)
#             gv1: R.Tensor((u_0,), dtype="int64") = R.negative(u1)
#             gv2: R.Tensor((u_0 + y_0,), dtype="int64") = R.concat((gv, gv1))
#             return gv2
#         gv3: R.Tensor(dtype="int64", ndim=1) = f(u)
#         gv31: R.Tensor((gv3_0,), dtype="int64") = R.match_cast(gv3, R.Tensor((gv3_0,), dtype="int64"))
#         gv4: R.Tensor((gv3_0,), dtype="int64") = R.negative(gv31)
#         return gv4
#
#     @R.function
#     def loop(x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         gv4_0 = T.int64()
#         @R.function
#         def short(i: R.Tensor((), dtype="int64"), y: R.Tensor(dtype="int64", ndim=1)) -> R.Tensor((), dtype="bool"):
#             gv: R.Tensor((), dtype="bool") = R.less(i, R.const(3, "int64"))
#             return gv
#         @R.function
#         def step(i1: R.Tensor((), dtype="int64"), y1: R.Tensor(dtype="int64", ndim=1)) -> R.Tuple(R.Tensor((), dtype="int64"), R.Tensor(dtype="int64", ndim=1)):
#             y1_0 = T.int64()
#             y11: R.Tensor((y1_0,), dtype="int64") = R.match_cast(y1, R.Tensor((y1_0,), dtype="int64"))
#             gv1: R.Tensor((), dtype="int64") = R.add(i1, R.const(1, "int64"))
#             gv2: R.Tensor((y1_0,), dtype="int64") = R.add(y11, i1)
#             gv3: R.Tensor((y1_0 * 2,), dtype="int64") = R.concat((y11, gv2))
#             return (gv1, gv3)
#         state: R.Tuple(R.Tensor((), dtype="int64"), R.Tensor(dtype="int64", ndim=1)) = R.while_loop(short, step, R.const(0, "int64"), x)
#         gv4: R.Tensor(dtype="int64", ndim=1) = state[1]
#         gv41: R.Tensor((gv4_0,), dtype="int64") = R.match_cast(gv4, R.Tensor((gv4_0,), dtype="int64"))
#         gv5: R.Tensor((gv4_0,), dtype="int64") = R.negative(gv41)
#         return gv5
#
#     @R.function
#     def grow(x: R.Tensor(("n",), dtype="int64")) -> R.Tensor(dtype="int64", ndim=1):
#         n = T.int64()
#         y4_0 = T.int64()
#         y: R.Tensor((n,), dtype="int64") = x
#         @R.function
#         def cond(i1_1: R.Prim(value="i"), y3: R.Tensor(("y_0",), dtype="int64")) -> R.Prim("bool", value="i <= 2"):
#             i = T.int64()
#             y_0 = T.int64()
#             return R.prim_value(T.bool(i <= 2))
#         @R.function
#         def body(i2: R.Prim(value="i1"), y1: R.Tensor(("y_0_1",), dtype="int64")) -> R.Tuple(R.Prim(value="i1 + 1"), R.Tensor(("y_0_1 * 2",), dtype="int64")):
#             i1 = T.int64()
#             y_0_1 = T.int64()
#             y2: R.Tensor((y_0_1 * 2,), dtype="int64") = R.concat((y1, y1))
#             return (R.prim_value(i1 + 1), y2)
#         gv: R.Tuple(R.Prim("int64"), R.Tensor(dtype="int64", ndim=1)) = R.while_loop(cond, body, R.prim_value(0), y)
#         y4: R.Tensor(dtype="int64", ndim=1) = gv[1]
#         y41: R.Tensor((y4_0,), dtype="int64") = R.match_cast(y4, R.Tensor((y4_0,), dtype="int64"))
#         gv1: R.Tensor((y4_0,), dtype="int64") = R.add(y41, R.const(1, "int64"))
#         return gv1
