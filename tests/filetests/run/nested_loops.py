# Loops in loops of graph functions: each iteration of the outer loop starts the inner one anew.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A captured value is the initial state of the inner loop: each iteration of the outer loop reads it again.
    @R.function
    def captured(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = R.add(x, x)
        for j in R.range(3):
            a = x
            for i in R.range(2):
                a = R.add(a, R.const(1, "float32"))
        return R.add(a, x)

    @R.function
    def no_turns(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = y
        for j in R.range(2):
            a = x
            for i in R.range(n - n):
                a = R.add(a, y)
        return a

    @R.function
    def computed_before(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        e = R.exp(x)
        s = x
        for j in R.range(3):
            c = e
            i = R.const(0, "int64")
            while R.less(i, R.const(2, "int64")):
                c = R.add(c, s)
                i = R.add(i, R.const(1, "int64"))
            s = R.multiply(c, R.const(0.5, "float32"))
        return s

    @R.function
    def tuples(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        t = (x, R.add(x, x))
        s = x
        for j in R.range(2):
            c = t
            for i in R.range(3):
                c = (c[1], R.add(c[0], x))
                if i >= 1:
                    break
            s = R.add(s, c[0])
        return s

    # A loop in the condition starts with the state, which the body reads afterwards.
    @R.function
    def in_the_condition(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()

        @R.function
        def little(i: R.Tensor((), "int64"), y: R.Tensor((n,), "float32")) -> R.Tensor((), "bool"):
            z = y
            for j in R.range(2):
                z = R.add(z, x)
            return R.logical_and(R.less(i, R.const(3, "int64")), R.less(R.sum(z), R.const(1e9, "float32")))

        @R.function
        def turn(i: R.Tensor((), "int64"), y: R.Tensor((n,), "float32")) -> R.Tuple(R.Tensor((), "int64"), R.Tensor((n,), "float32")):
            return (R.add(i, R.const(1, "int64")), R.add(y, x))

        out = R.while_loop(little, turn, R.const(0, "int64"), x)
        return out[1]

    # Arithmetic on scalars returns scalars, whether they are parameters or not.
    @R.function
    def scalars(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Prim("int64"):
        a = R.prim_value(3)
        s = R.prim_value(0)
        for j in R.range(3):
            c = a
            for i in R.range(2):
                c = c * 2 + i
            s = s + c - k
        return s

# expect
# captured at n=0 j=3 i=31 i=1 j=7: Tensor([0], float32) []
# captured at n=1 j=7 i=64 i=2 j=8: Tensor([1], float32) [0.8750]
# captured at n=2 j=8 i=0 i=3 j=31: Tensor([2], float32) [0.0625, 2.6562]
# captured at n=3 j=31 i=1 i=7 j=64: Tensor([3], float32) [-0.8125, -1.9375, 3.9688]
# captured at n=7 j=64 i=2 i=8 j=0: Tensor([7], float32) [5.5000, 3.7812, 0.6562, 2.0312, -1.3438, -1.8750, ... sum 8.875]
# captured at n=8 j=0 i=3 i=31 j=1: Tensor([8], float32) [-0.0625, 3.7188, -0.4062, 5.9375, 1.0000, -0.2500, ... sum 17.656]
# captured at n=31 j=1 i=7 i=64 j=2: Tensor([31], float32) [-1.5938, 5.0625, 4.0625, 3.1250, 5.7500, 3.9375, ... sum 65.406]
# captured at n=64 j=2 i=8 i=0 j=3: Tensor([64], float32) [3.9375, 2.4688, -1.1250, 3.0000, 2.4688, 4.0312, ... sum 136.062]
# no_turns at n=0 j=3 i=31 i=1 j=7: Tensor([0], float32) []
# no_turns at n=1 j=7 i=64 i=2 j=8: Tensor([1], float32) [-0.5625]
# no_turns at n=2 j=8 i=0 i=3 j=31: Tensor([2], float32) [-0.9688, 0.3281]
# no_turns at n=3 j=31 i=1 i=7 j=64: Tensor([3], float32) [-1.4062, -1.9688, 0.9844]
# no_turns at n=7 j=64 i=2 i=8 j=0: Tensor([7], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum -2.562]
# no_turns at n=8 j=0 i=3 i=31 j=1: Tensor([8], float32) [-1.0312, 0.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 0.828]
# no_turns at n=31 j=1 i=7 i=64 j=2: Tensor([31], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 1.703]
# no_turns at n=64 j=2 i=8 i=0 j=3: Tensor([64], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 4.031]
# computed_before at n=0 j=3 j=31: Tensor([0], float32) []
# computed_before at n=1 j=7 j=64: Tensor([1], float32) [0.2922]
# computed_before at n=2 j=8 j=0: Tensor([2], float32) [-0.3994, 2.4107]
# computed_before at n=3 j=31 j=1: Tensor([3], float32) [-1.0387, -1.7593, 4.9986]
# computed_before at n=7 j=64 j=2: Tensor([7], float32) [10.3819, 4.5456, 0.0942, 1.5392, -1.3900, -1.7214, ... sum 13.099]
# computed_before at n=8 j=0 j=3: Tensor([8], float32) [-0.4964, 4.4019, -0.7527, 12.7113, 0.4098, -0.6380, ... sum 25.490]
# computed_before at n=31 j=1 j=7: Tensor([31], float32) [-1.5482, 8.4672, 5.2381, 3.1951, 11.6562, 4.9207, ... sum 98.714]
# computed_before at n=64 j=2 j=8: Tensor([64], float32) [4.9207, 2.1306, -1.2481, 2.9731, 2.1306, 5.1573, ... sum 181.670]
# tuples at n=0 j=3 i=31 i=1 j=7: Tensor([0], float32) []
# tuples at n=1 j=7 i=64 i=2 j=8: Tensor([1], float32) [-2.8125]
# tuples at n=2 j=8 i=0 i=3 j=31: Tensor([2], float32) [-4.8438, 1.6406]
# tuples at n=3 j=31 i=1 i=7 j=64: Tensor([3], float32) [-7.0312, -9.8438, 4.9219]
# tuples at n=7 j=64 i=2 i=8 j=0: Tensor([7], float32) [8.7500, 4.4531, -3.3594, 0.0781, -8.3594, -9.6875, ... sum -12.812]
# tuples at n=8 j=0 i=3 i=31 j=1: Tensor([8], float32) [-5.1562, 4.2969, -6.0156, 9.8438, -2.5000, -5.6250, ... sum 4.141]
# tuples at n=31 j=1 i=7 i=64 j=2: Tensor([31], float32) [-8.9844, 7.6562, 5.1562, 2.8125, 9.3750, 4.8438, ... sum 8.516]
# tuples at n=64 j=2 i=8 i=0 j=3: Tensor([64], float32) [4.8438, 1.1719, -7.8125, 2.5000, 1.1719, 5.0781, ... sum 20.156]
# in_the_condition at n=0 j=3 j=31: Tensor([0], float32) []
# in_the_condition at n=1 j=7 j=64: Tensor([1], float32) [-2.2500]
# in_the_condition at n=2 j=8 j=0: Tensor([2], float32) [-3.8750, 1.3125]
# in_the_condition at n=3 j=31 j=1: Tensor([3], float32) [-5.6250, -7.8750, 3.9375]
# in_the_condition at n=7 j=64 j=2: Tensor([7], float32) [7.0000, 3.5625, -2.6875, 0.0625, -6.6875, -7.7500, ... sum -10.250]
# in_the_condition at n=8 j=0 j=3: Tensor([8], float32) [-4.1250, 3.4375, -4.8125, 7.8750, -2.0000, -4.5000, ... sum 3.312]
# in_the_condition at n=31 j=1 j=7: Tensor([31], float32) [-7.1875, 6.1250, 4.1250, 2.2500, 7.5000, 3.8750, ... sum 6.812]
# in_the_condition at n=64 j=2 j=8: Tensor([64], float32) [3.8750, 0.9375, -6.2500, 2.0000, 0.9375, 4.0625, ... sum 16.125]
# scalars at n=0 k=3 j=31 s=1 j=7 s=64 c3=2 i=8 c=0 i=3 c=31: 30
# scalars at n=1 k=7 j=64 s=2 j=8 s=0 c3=3 i=31 c=1 i=7 c=64: 18
# scalars at n=2 k=8 j=0 s=3 j=31 s=1 c3=7 i=64 c=2 i=8 c=0: 15
# scalars at n=3 k=31 j=1 s=7 j=64 s=2 c3=8 i=0 c=3 i=31 c=1: -54
# scalars at n=7 k=64 j=2 s=8 j=0 s=3 c3=31 i=1 c=7 i=64 c=2: -153
# scalars at n=8 k=0 j=3 s=31 j=1 s=7 c3=64 i=2 c=8 i=0 c=3: 39
# scalars at n=31 k=1 j=7 s=64 j=2 s=8 c3=0 i=3 c=31 i=1 c=7: 36
# scalars at n=64 k=2 j=8 s=0 j=3 s=31 c3=1 i=7 c=64 i=2 c=8: 33
