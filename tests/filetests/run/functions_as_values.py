# Functions that are returned, passed or chosen by a branch; mutual recursion; explicit closures.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A function with captured values is returned and called.
    @R.function
    def adder(x: R.Tensor(("n",), "int64")) -> R.Callable((R.Tensor((), "int64"),), R.Tensor(ndim=1, dtype="int64")):
        n = T.int64()
        two = R.add(x, x)

        @R.function
        def add(y: R.Tensor((), "int64")) -> R.Tensor((n,), "int64"):
            return R.add(two, y)

        return add

    @R.function
    def returned(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        cls = Module
        f = cls.adder(x)
        a = f(R.const(1, "int64"))
        return f(R.sum(a))

    # Functions as arguments: local, global.
    @R.function
    def twice(
        f: R.Callable((R.Tensor(ndim=1, dtype="int64"),), R.Tensor(ndim=1, dtype="int64")),
        x: R.Tensor(ndim=1, dtype="int64"),
    ) -> R.Tensor(ndim=1, dtype="int64"):
        return f(f(x))

    @R.function
    def negate(x: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
        return R.negative(x)

    @R.function
    def passed(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        cls = Module

        @R.function
        def append(y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
            return R.concat([y, x])

        a = cls.twice(append, x)
        return cls.twice(cls.negate, a)

    # A branch selects the function to call.
    @R.function
    def chosen(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        cls = Module

        @R.function
        def same(y: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
            return y

        if n > 2:
            f = same
        else:
            f = cls.negate
        return f(x)

    # Mutual recursion of local functions with different captured values.
    @R.function
    def even(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        one = R.const(1, "int64")
        yes = R.add(x, one)

        @R.function
        def is_even(i: R.Tensor((), "int64")) -> R.Tensor((n,), "int64"):
            if R.equal(i, R.const(0, "int64")):
                return yes
            return is_odd(R.subtract(i, one))

        @R.function
        def is_odd(i: R.Tensor((), "int64")) -> R.Tensor((n,), "int64"):
            if R.equal(i, R.const(0, "int64")):
                return R.negative(x)
            return is_even(R.subtract(i, one))

        return is_even(R.sum(x))

    # A local function inside another, which calls the outer one.
    @R.function
    def nested(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()

        @R.function
        def outer(y: R.Tensor(ndim=1, dtype="int64"), i: R.Tensor((), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
            @R.function
            def inner(z: R.Tensor(ndim=1, dtype="int64")) -> R.Tensor(ndim=1, dtype="int64"):
                return outer(R.concat([z, y]), R.subtract(i, R.const(1, "int64")))

            if R.less(i, R.const(1, "int64")):
                r = y
            else:
                r = inner(x)
            return r

        return outer(x, R.const(2, "int64"))

    # Explicit closures: the captured values follow the arguments.
    @R.function
    def scaled(x: R.Tensor(("n",), "int64"), k: R.Tensor((), "int64"), c: R.Tensor((), "int64")) -> R.Tensor(("n",), "int64"):
        return R.add(R.multiply(x, k), c)

    @R.function(pure=False)
    def explicit(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        f = R.make_closure(cls.scaled, (R.const(3, "int64"), R.const(1, "int64")))
        a = R.invoke_pure_closure(f, (x,), sinfo_args=(R.Tensor((n,), "int64"),))
        b = R.invoke_closure(f, (a,), sinfo_args=(R.Tensor((n,), "int64"),))
        return b

# expect
# adder at n=0: an object
# adder at n=1: an object
# adder at n=2: an object
# adder at n=3: an object
# adder at n=7: an object
# adder at n=8: an object
# adder at n=31: an object
# adder at n=64: an object
# returned at n=0 n=3: Tensor([0], int64) []
# returned at n=1 n=7: Tensor([1], int64) [9.0000]
# returned at n=2 n=8: Tensor([2], int64) [8.0000, 8.0000]
# returned at n=3 n=31: Tensor([3], int64) [17.0000, 13.0000, 19.0000]
# returned at n=7 n=64: Tensor([7], int64) [27.0000, 23.0000, 29.0000, 25.0000, 25.0000, 23.0000, ... sum 177.000]
# returned at n=8 n=0: Tensor([8], int64) [20.0000, 22.0000, 24.0000, 20.0000, 26.0000, 20.0000, ... sum 172.000]
# returned at n=31 n=1: Tensor([31], int64) [135.0000, 129.0000, 133.0000, 135.0000, 133.0000, 131.0000, ... sum 4097.000]
# returned at n=64 n=2: Tensor([64], int64) [248.0000, 246.0000, 246.0000, 244.0000, 248.0000, 244.0000, ... sum 15796.000]
# negate: Tensor([0], int64) []
# passed at n=0: Tensor([0], int64) []
# passed at n=1: Tensor([3], int64) [2.0000, 2.0000, 2.0000]
# passed at n=2: Tensor([6], int64) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000]
# passed at n=3: Tensor([9], int64) [2.0000, 0.0000, 3.0000, 2.0000, 0.0000, 3.0000, ... sum 15.000]
# passed at n=7: Tensor([21], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 24.000]
# passed at n=8: Tensor([24], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 18.000]
# passed at n=31: Tensor([93], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 147.000]
# passed at n=64: Tensor([192], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 270.000]
# chosen at n=0: Tensor([0], int64) []
# chosen at n=1: Tensor([1], int64) [-2.0000]
# chosen at n=2: Tensor([2], int64) [-1.0000, -1.0000]
# chosen at n=3: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# chosen at n=7: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000]
# chosen at n=8: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# chosen at n=31: Tensor([31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000]
# chosen at n=64: Tensor([64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000]
# even at n=0: Tensor([0], int64) []
# even at n=1: Tensor([1], int64) [3.0000]
# even at n=2: Tensor([2], int64) [2.0000, 2.0000]
# even at n=3: Tensor([3], int64) [-2.0000, 0.0000, -3.0000]
# even at n=7: Tensor([7], int64) [3.0000, 1.0000, 4.0000, 2.0000, 2.0000, 1.0000, ... sum 15.000]
# even at n=8: Tensor([8], int64) [1.0000, 2.0000, 3.0000, 1.0000, 4.0000, 1.0000, ... sum 14.000]
# even at n=31: Tensor([31], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -49.000]
# even at n=64: Tensor([64], int64) [3.0000, 2.0000, 2.0000, 1.0000, 3.0000, 1.0000, ... sum 154.000]
# nested at n=0: Tensor([0], int64) []
# nested at n=1: Tensor([3], int64) [2.0000, 2.0000, 2.0000]
# nested at n=2: Tensor([6], int64) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000]
# nested at n=3: Tensor([9], int64) [2.0000, 0.0000, 3.0000, 2.0000, 0.0000, 3.0000, ... sum 15.000]
# nested at n=7: Tensor([21], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 24.000]
# nested at n=8: Tensor([24], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 18.000]
# nested at n=31: Tensor([93], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 147.000]
# nested at n=64: Tensor([192], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 270.000]
# scaled at n=0: Tensor([0], int64) []
# scaled at n=1: Tensor([1], int64) [7.0000]
# scaled at n=2: Tensor([2], int64) [4.0000, 4.0000]
# scaled at n=3: Tensor([3], int64) [5.0000, 1.0000, 7.0000]
# scaled at n=7: Tensor([7], int64) [6.0000, 0.0000, 9.0000, 3.0000, 3.0000, 0.0000, ... sum 24.000]
# scaled at n=8: Tensor([8], int64) [2.0000, 5.0000, 8.0000, 2.0000, 11.0000, 2.0000, ... sum 34.000]
# scaled at n=31: Tensor([31], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000]
# scaled at n=64: Tensor([64], int64) [6.0000, 3.0000, 3.0000, 0.0000, 6.0000, 0.0000, ... sum 270.000]
# explicit at n=0 n=3: Tensor([0], int64) []
# explicit at n=1 n=7: Tensor([1], int64) [22.0000]
# explicit at n=2 n=8: Tensor([2], int64) [13.0000, 13.0000]
# explicit at n=3 n=31: Tensor([3], int64) [22.0000, 4.0000, 31.0000]
# explicit at n=7 n=64: Tensor([7], int64) [22.0000, 4.0000, 31.0000, 13.0000, 13.0000, 4.0000, ... sum 100.000]
# explicit at n=8 n=0: Tensor([8], int64) [4.0000, 13.0000, 22.0000, 4.0000, 31.0000, 4.0000, ... sum 86.000]
# explicit at n=31 n=1: Tensor([31], int64) [31.0000, 4.0000, 22.0000, 31.0000, 22.0000, 13.0000, ... sum 565.000]
# explicit at n=64 n=2: Tensor([64], int64) [22.0000, 13.0000, 13.0000, 4.0000, 22.0000, 4.0000, ... sum 1066.000]
