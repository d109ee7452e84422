# `R.while_loop` with one and with several state values, constant and growing.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A single state value of constant shape.
    @R.function
    def double(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()

        @R.function
        def small(y: R.Tensor((n,), "int64")) -> R.Tensor((), "bool"):
            if n == 0:
                return R.const(False, "bool")
            return R.less(R.max(y), R.const(50, "int64"))

        @R.function
        def twice(y: R.Tensor((n,), "int64")) -> R.Tensor((n,), "int64"):
            return R.add(R.add(y, y), R.const(1, "int64"))

        return R.while_loop(small, twice, x)

    # Several state values, one of which grows by a row in each iteration.
    @R.function
    def grow(x: R.Tensor(("n", 2), "int64")) -> R.Tensor(ndim=2, dtype="int64"):
        n = T.int64()

        @R.function
        def more(i: R.Tensor((), "int64"), cache: R.Tensor(("k", 2), "int64")) -> R.Tensor((), "bool"):
            k = T.int64()
            return R.less(i, R.const(3, "int64"))

        @R.function
        def push(
            i: R.Tensor((), "int64"), cache: R.Tensor(("k", 2), "int64")
        ) -> R.Tuple(R.Tensor((), "int64"), R.Tensor(("k + 1", 2), "int64")):
            k = T.int64()
            row = R.broadcast_to(i, (1, 2))
            longer = R.concat([cache, row], axis=0)
            return (R.add(i, R.const(1, "int64")), longer)

        state = R.while_loop(more, push, R.const(0, "int64"), x)
        return state[1]

    # Zero iterations.
    @R.function
    def none(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        return R.while_loop(cls.never, cls.double, x)

    @R.function
    def never(x: R.Tensor(("n",), "int64")) -> R.Prim("bool"):
        n = T.int64()
        return R.prim_value(n < 0)

# expect
# double at n=0: Tensor([0], int64) []
# double at n=1: Tensor([1], int64) [95.0000]
# double at n=2: Tensor([2], int64) [63.0000, 63.0000]
# double at n=3: Tensor([3], int64) [47.0000, 15.0000, 63.0000]
# double at n=7: Tensor([7], int64) [47.0000, 15.0000, 63.0000, 31.0000, 31.0000, 15.0000, ... sum 233.000]
# double at n=8: Tensor([8], int64) [15.0000, 31.0000, 47.0000, 15.0000, 63.0000, 15.0000, ... sum 216.000]
# double at n=31: Tensor([31], int64) [63.0000, 15.0000, 47.0000, 63.0000, 47.0000, 31.0000, ... sum 1249.000]
# double at n=64: Tensor([64], int64) [47.0000, 31.0000, 31.0000, 15.0000, 47.0000, 15.0000, ... sum 2400.000]
# grow at n=0 k=3 k=31: Tensor([3, 2], int64) [0.0000, 0.0000, 1.0000, 1.0000, 2.0000, 2.0000]
# grow at n=1 k=7 k=64: Tensor([4, 2], int64) [2.0000, 2.0000, 0.0000, 0.0000, 1.0000, 1.0000, ... sum 10.000]
# grow at n=2 k=8 k=0: Tensor([5, 2], int64) [1.0000, 1.0000, 1.0000, 3.0000, 0.0000, 0.0000, ... sum 12.000]
# grow at n=3 k=31 k=1: Tensor([6, 2], int64) [2.0000, 0.0000, 3.0000, 2.0000, 1.0000, 1.0000, ... sum 15.000]
# grow at n=7 k=64 k=2: Tensor([10, 2], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 27.000]
# grow at n=8 k=0 k=3: Tensor([11, 2], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 25.000]
# grow at n=31 k=1 k=7: Tensor([34, 2], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 108.000]
# grow at n=64 k=2 k=8: Tensor([67, 2], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 194.000]
# none at n=0 n=3 n=31: Tensor([0], int64) []
# none at n=1 n=7 n=64: Tensor([1], int64) [2.0000]
# none at n=2 n=8 n=0: Tensor([2], int64) [1.0000, 1.0000]
# none at n=3 n=31 n=1: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# none at n=7 n=64 n=2: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000]
# none at n=8 n=0 n=3: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# none at n=31 n=1 n=7: Tensor([31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000]
# none at n=64 n=2 n=8: Tensor([64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000]
# never at n=0: false
# never at n=1: false
# never at n=2: false
# never at n=3: false
# never at n=7: false
# never at n=8: false
# never at n=31: false
# never at n=64: false
