# Loops share their condition and body with other loops and with a direct call.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Two loops and a call share the loop functions, one of which is public.
    @R.function(private=True)
    def below(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")) -> R.Tensor((), "bool"):
        return R.less(i, R.const(4, "int64"))

    @R.function
    def turn(i: R.Tensor((), "int64"), x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor(("n",), "float32")):
        return (R.add(i, R.const(1, "int64")), R.add(x, R.const(0.5, "float32")))

    @R.function
    def twice(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        a = R.while_loop(cls.below, cls.turn, R.const(0, "int64"), x)
        b = R.while_loop(cls.below, cls.turn, R.const(2, "int64"), a[1])
        c = cls.turn(b[0], b[1])
        return R.add(a[1], c[1])

    # Two loops use the same closure and read its captured values.
    @R.function
    def closures(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module

        @R.function
        def grow(i: R.Tensor((), "int64"), y: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((n,), "float32")):
            return (R.add(i, R.const(1, "int64")), R.add(y, x))

        a = R.while_loop(cls.below, grow, R.const(1, "int64"), x)
        b = R.while_loop(cls.below, grow, R.const(3, "int64"), a[1])
        return b[1]

    # Shared functions whose symbolic size changes in each iteration.
    @R.function(private=True)
    def short(x: R.Tensor(("m",), "float32")) -> R.Tensor((), "bool"):
        m = T.int64()
        return R.less(R.sum(R.ones((m,), "float32")), R.const(20.0, "float32"))

    @R.function(private=True)
    def longer(x: R.Tensor(("m",), "float32")) -> R.Tensor(("m + 3",), "float32"):
        m = T.int64()
        return R.concat([x, R.zeros((3,), "float32")])

    @R.function
    def growing(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        cls = Module
        a = R.while_loop(cls.short, cls.longer, x)
        b = R.while_loop(cls.short, cls.longer, cls.longer(x))
        return R.concat([a, b])

# expect
# turn at n=0: (Tensor([], int64) [2.0000], Tensor([0], float32) [])
# turn at n=1: (Tensor([], int64) [3.0000], Tensor([1], float32) [2.1250])
# turn at n=2: (Tensor([], int64) [2.0000], Tensor([2], float32) [0.8281, 1.2969])
# turn at n=3: (Tensor([], int64) [3.0000], Tensor([3], float32) [-1.4688, 1.4844, 2.4375])
# turn at n=7: (Tensor([], int64) [3.0000], Tensor([7], float32) [1.3906, -0.1719, 0.5156, -1.1719, -1.4375, -0.4375, ... sum -0.125])
# turn at n=8: (Tensor([], int64) [1.0000], Tensor([8], float32) [1.3594, -0.7031, 2.4688, 0.0000, -0.6250, 1.1094, ... sum 4.125])
# turn at n=31: (Tensor([], int64) [4.0000], Tensor([31], float32) [2.0312, 1.5312, 1.0625, 2.3750, 1.4688, 2.0938, ... sum 19.531])
# turn at n=64: (Tensor([], int64) [3.0000], Tensor([64], float32) [0.7344, -1.0625, 1.0000, 0.7344, 1.5156, 1.7188, ... sum 33.641])
# twice at n=0 n=3 n=31: Tensor([0], float32) []
# twice at n=1 n=7 n=64: Tensor([1], float32) [4.3750]
# twice at n=2 n=8 n=0: Tensor([2], float32) [3.5625, 6.1562]
# twice at n=3 n=31 n=1: Tensor([3], float32) [2.6875, 1.5625, 7.4688]
# twice at n=7 n=64 n=2: Tensor([7], float32) [9.0000, 7.2812, 4.1562, 5.5312, 2.1562, 1.6250, ... sum 33.375]
# twice at n=8 n=0 n=3: Tensor([8], float32) [3.4375, 7.2188, 3.0938, 9.4375, 4.5000, 3.2500, ... sum 45.656]
# twice at n=31 n=1 n=7: Tensor([31], float32) [1.9062, 8.5625, 7.5625, 6.6250, 9.2500, 7.4375, ... sum 173.906]
# twice at n=64 n=2 n=8: Tensor([64], float32) [7.4375, 5.9688, 2.3750, 6.5000, 5.9688, 7.5312, ... sum 360.062]
# closures at n=0 n=3: Tensor([0], float32) []
# closures at n=1 n=7: Tensor([1], float32) [-2.8125]
# closures at n=2 n=8: Tensor([2], float32) [-4.8438, 1.6406]
# closures at n=3 n=31: Tensor([3], float32) [-7.0312, -9.8438, 4.9219]
# closures at n=7 n=64: Tensor([7], float32) [8.7500, 4.4531, -3.3594, 0.0781, -8.3594, -9.6875, ... sum -12.812]
# closures at n=8 n=0: Tensor([8], float32) [-5.1562, 4.2969, -6.0156, 9.8438, -2.5000, -5.6250, ... sum 4.141]
# closures at n=31 n=1: Tensor([31], float32) [-8.9844, 7.6562, 5.1562, 2.8125, 9.3750, 4.8438, ... sum 8.516]
# closures at n=64 n=2: Tensor([64], float32) [4.8438, 1.1719, -7.8125, 2.5000, 1.1719, 5.0781, ... sum 20.156]
# growing at n=0 m=3 m=31: Tensor([42], float32) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000]
# growing at n=1 m=7 m=64: Tensor([44], float32) [-0.5625, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum -1.125]
# growing at n=2 m=8 m=0: Tensor([40], float32) [-0.9688, 0.3281, 0.0000, 0.0000, 0.0000, 0.0000, ... sum -1.281]
# growing at n=3 m=31 m=1: Tensor([42], float32) [-1.4062, -1.9688, 0.9844, 0.0000, 0.0000, 0.0000, ... sum -4.781]
# growing at n=7 m=64 m=2: Tensor([44], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum -5.125]
# growing at n=8 m=0 m=3: Tensor([40], float32) [-1.0312, 0.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 1.656]
# growing at n=31 m=1 m=7: Tensor([65], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 3.406]
# growing at n=64 m=2 m=8: Tensor([131], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 8.062]
