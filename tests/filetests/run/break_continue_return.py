# `break`, `continue` and `return` in the loops of graph functions.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def breaks(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        for i in R.range(n):
            if i == 3:
                break
            y = R.add(y, x)
        return y

    @R.function
    def skips(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        total = R.const(0, "int64")
        for i in R.range(n):
            if i % 2 == 0:
                continue
            elif i > 20:
                total = R.add(total, R.const(1000, "int64"))
                break
            total = R.add(total, R.const(1, "int64"))
        return total

    # A return from inside a loop, and after it.
    @R.function
    def finds(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        y = x
        for i in R.range(10):
            y = R.add(y, x)
            if R.greater(R.sum(y), R.const(30, "int64")):
                return R.concat([y, y])
        return R.negative(y)

    # Loops that count down, and loops with a step.
    @R.function
    def down(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        turns = R.const(0, "int64")
        for i in R.range(n, 0, -3):
            if i < 4:
                break
            turns = R.add(turns, R.const(1, "int64"))
        return turns

    @R.function
    def forever(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        i = x
        while True:
            i = R.add(i, R.const(7, "int64"))
            if R.greater(i, R.const(100, "int64")):
                break
        return i

    @R.function
    def forever_returning(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        i = x
        while True:
            i = R.add(i, R.const(7, "int64"))
            if R.less(i, R.const(50, "int64")):
                continue
            if R.greater(i, R.const(100, "int64")):
                return i
        return x

    # The condition is not evaluated again after a break.
    @R.function
    def while_break(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        y = x
        while R.less(R.sum(y), R.const(40, "int64")):
            y = R.concat([y, R.full((1,), R.const(5, "int64"), "int64")])
            if n > 7:
                break
            elif n == 3:
                return y
        return R.negative(y)

    # A break out of the inner loop only, and out of both.
    @R.function
    def nested(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        for i in R.range(4):
            for j in R.range(4):
                if j > i:
                    break
                if i == 2 and n == 7:
                    return R.negative(y)
                if j == 1:
                    continue
                y = R.add(y, x)
            if n == 2:
                break
        return y

    # A cache grows in iterations, some of which are skipped.
    @R.function
    def cache(x: R.Tensor(("n", 2), "int64")) -> R.Tensor(ndim=2, dtype="int64"):
        n = T.int64()
        k = R.zeros((0, 2), "int64")
        for i in R.range(6):
            if i % 2 == 1:
                continue
            k = R.concat([k, R.reshape(R.sum(x, axis=0), (1, 2))])
            if i == 4:
                break
        return k

    @R.function
    def pair(x: R.Tensor(("n",), "int64")) -> R.Tuple(R.Tensor(("n",), "int64"), R.Tensor((), "int64")):
        n = T.int64()
        for i in R.range(3):
            if n == 2:
                return (R.negative(x), R.const(1, "int64"))
            if n == 3:
                return (x, R.const(2, "int64"))
        return (x, R.const(0, "int64"))

    @R.function
    def first_turn(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        for i in R.range(n):
            return R.negative(x)
        return x

    @R.function
    def any_kind(x: R.Tensor(("n",), "int64")) -> R.Object:
        n = T.int64()
        for i in R.range(n):
            if n == 1:
                return x
            if n == 2:
                return (x, x)
        return R.shape([n])

# expect
# breaks at n=0 i=3 i=31: Tensor([0], int64) []
# breaks at n=1 i=7 i=64: Tensor([1], int64) [4.0000]
# breaks at n=2 i=8 i=0: Tensor([2], int64) [3.0000, 3.0000]
# breaks at n=3 i=31 i=1: Tensor([3], int64) [8.0000, 0.0000, 12.0000]
# breaks at n=7 i=64 i=2: Tensor([7], int64) [8.0000, 0.0000, 12.0000, 4.0000, 4.0000, 0.0000, ... sum 32.000]
# breaks at n=8 i=0 i=3: Tensor([8], int64) [0.0000, 4.0000, 8.0000, 0.0000, 12.0000, 0.0000, ... sum 24.000]
# breaks at n=31 i=1 i=7: Tensor([31], int64) [12.0000, 0.0000, 8.0000, 12.0000, 8.0000, 4.0000, ... sum 196.000]
# breaks at n=64 i=2 i=8: Tensor([64], int64) [8.0000, 4.0000, 4.0000, 0.0000, 8.0000, 0.0000, ... sum 360.000]
# skips at n=0 i=3 i=31: Tensor([], int64) [0.0000]
# skips at n=1 i=7 i=64: Tensor([], int64) [0.0000]
# skips at n=2 i=8 i=0: Tensor([], int64) [1.0000]
# skips at n=3 i=31 i=1: Tensor([], int64) [1.0000]
# skips at n=7 i=64 i=2: Tensor([], int64) [3.0000]
# skips at n=8 i=0 i=3: Tensor([], int64) [4.0000]
# skips at n=31 i=1 i=7: Tensor([], int64) [1010.0000]
# skips at n=64 i=2 i=8: Tensor([], int64) [1010.0000]
# finds at n=0 i=3 i=31: Tensor([0], int64) []
# finds at n=1 i=7 i=64: Tensor([1], int64) [-22.0000]
# finds at n=2 i=8 i=0: Tensor([2], int64) [-11.0000, -11.0000]
# finds at n=3 i=31 i=1: Tensor([6], int64) [14.0000, 0.0000, 21.0000, 14.0000, 0.0000, 21.0000]
# finds at n=7 i=64 i=2: Tensor([14], int64) [8.0000, 0.0000, 12.0000, 4.0000, 4.0000, 0.0000, ... sum 64.000]
# finds at n=8 i=0 i=3: Tensor([16], int64) [0.0000, 6.0000, 12.0000, 0.0000, 18.0000, 0.0000, ... sum 72.000]
# finds at n=31 i=1 i=7: Tensor([62], int64) [6.0000, 0.0000, 4.0000, 6.0000, 4.0000, 2.0000, ... sum 196.000]
# finds at n=64 i=2 i=8: Tensor([128], int64) [4.0000, 2.0000, 2.0000, 0.0000, 4.0000, 0.0000, ... sum 360.000]
# down at n=0 i=3 i=31: Tensor([], int64) [0.0000]
# down at n=1 i=7 i=64: Tensor([], int64) [0.0000]
# down at n=2 i=8 i=0: Tensor([], int64) [0.0000]
# down at n=3 i=31 i=1: Tensor([], int64) [0.0000]
# down at n=7 i=64 i=2: Tensor([], int64) [2.0000]
# down at n=8 i=0 i=3: Tensor([], int64) [2.0000]
# down at n=31 i=1 i=7: Tensor([], int64) [10.0000]
# down at n=64 i=2 i=8: Tensor([], int64) [21.0000]
# forever: Tensor([], int64) [106.0000]
# forever_returning: Tensor([], int64) [106.0000]
# while_break at n=0 y_0=3 y_0=31: Tensor([8], int64) [-5.0000, -5.0000, -5.0000, -5.0000, -5.0000, -5.0000, ... sum -40.000]
# while_break at n=1 y_0=7 y_0=64: Tensor([9], int64) [-2.0000, -5.0000, -5.0000, -5.0000, -5.0000, -5.0000, ... sum -42.000]
# while_break at n=2 y_0=8 y_0=0: Tensor([10], int64) [-1.0000, -1.0000, -5.0000, -5.0000, -5.0000, -5.0000, ... sum -42.000]
# while_break at n=3 y_0=31 y_0=1: Tensor([4], int64) [2.0000, 0.0000, 3.0000, 5.0000]
# while_break at n=7 y_0=64 y_0=2: Tensor([14], int64) [-2.0000, 0.0000, -3.0000, -1.0000, -1.0000, 0.0000, ... sum -43.000]
# while_break at n=8 y_0=0 y_0=3: Tensor([9], int64) [0.0000, -1.0000, -2.0000, 0.0000, -3.0000, 0.0000, ... sum -11.000]
# while_break at n=31 y_0=1 y_0=7: Tensor([31], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -49.000]
# while_break at n=64 y_0=2 y_0=8: Tensor([64], int64) [-2.0000, -1.0000, -1.0000, 0.0000, -2.0000, 0.0000, ... sum -90.000]
# nested at n=0 i=3 j=31 j=1 i=7: Tensor([0], int64) []
# nested at n=1 i=7 j=64 j=2 i=8: Tensor([1], int64) [16.0000]
# nested at n=2 i=8 j=0 j=3 i=31: Tensor([2], int64) [2.0000, 2.0000]
# nested at n=3 i=31 j=1 j=7 i=64: Tensor([3], int64) [16.0000, 0.0000, 24.0000]
# nested at n=7 i=64 j=2 j=8 i=0: Tensor([7], int64) [-6.0000, 0.0000, -9.0000, -3.0000, -3.0000, 0.0000, ... sum -24.000]
# nested at n=8 i=0 j=3 j=31 i=1: Tensor([8], int64) [0.0000, 8.0000, 16.0000, 0.0000, 24.0000, 0.0000, ... sum 48.000]
# nested at n=31 i=1 j=7 j=64 i=2: Tensor([31], int64) [24.0000, 0.0000, 16.0000, 24.0000, 16.0000, 8.0000, ... sum 392.000]
# nested at n=64 i=2 j=8 j=0 i=3: Tensor([64], int64) [16.0000, 8.0000, 8.0000, 0.0000, 16.0000, 0.0000, ... sum 720.000]
# cache at n=0 i=3 k_0=31 k_1=1 i=7 k_0=64 k_1=2: Tensor([3, 2], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000]
# cache at n=1 i=7 k_0=64 k_1=2 i=8 k_0=0 k_1=3: Tensor([3, 2], int64) [2.0000, 2.0000, 2.0000, 2.0000, 2.0000, 2.0000]
# cache at n=2 i=8 k_0=0 k_1=3 i=31 k_0=1 k_1=7: Tensor([3, 2], int64) [2.0000, 4.0000, 2.0000, 4.0000, 2.0000, 4.0000]
# cache at n=3 i=31 k_0=1 k_1=7 i=64 k_0=2 k_1=8: Tensor([3, 2], int64) [6.0000, 3.0000, 6.0000, 3.0000, 6.0000, 3.0000]
# cache at n=7 i=64 k_0=2 k_1=8 i=0 k_0=3 k_1=31: Tensor([3, 2], int64) [13.0000, 8.0000, 13.0000, 8.0000, 13.0000, 8.0000]
# cache at n=8 i=0 k_0=3 k_1=31 i=1 k_0=7 k_1=64: Tensor([3, 2], int64) [12.0000, 7.0000, 12.0000, 7.0000, 12.0000, 7.0000]
# cache at n=31 i=1 k_0=7 k_1=64 i=2 k_0=8 k_1=0: Tensor([3, 2], int64) [55.0000, 47.0000, 55.0000, 47.0000, 55.0000, 47.0000]
# cache at n=64 i=2 k_0=8 k_1=0 i=3 k_0=31 k_1=1: Tensor([3, 2], int64) [113.0000, 75.0000, 113.0000, 75.0000, 113.0000, 75.0000]
# pair at n=0 i=3 i=31: (Tensor([0], int64) [], Tensor([], int64) [0.0000])
# pair at n=1 i=7 i=64: (Tensor([1], int64) [2.0000], Tensor([], int64) [0.0000])
# pair at n=2 i=8 i=0: (Tensor([2], int64) [-1.0000, -1.0000], Tensor([], int64) [1.0000])
# pair at n=3 i=31 i=1: (Tensor([3], int64) [2.0000, 0.0000, 3.0000], Tensor([], int64) [2.0000])
# pair at n=7 i=64 i=2: (Tensor([7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000], Tensor([], int64) [0.0000])
# pair at n=8 i=0 i=3: (Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000], Tensor([], int64) [0.0000])
# pair at n=31 i=1 i=7: (Tensor([31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000], Tensor([], int64) [0.0000])
# pair at n=64 i=2 i=8: (Tensor([64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000], Tensor([], int64) [0.0000])
# first_turn at n=0 i=3 i=31: Tensor([0], int64) []
# first_turn at n=1 i=7 i=64: Tensor([1], int64) [-2.0000]
# first_turn at n=2 i=8 i=0: Tensor([2], int64) [-1.0000, -1.0000]
# first_turn at n=3 i=31 i=1: Tensor([3], int64) [-2.0000, 0.0000, -3.0000]
# first_turn at n=7 i=64 i=2: Tensor([7], int64) [-2.0000, 0.0000, -3.0000, -1.0000, -1.0000, 0.0000, ... sum -8.000]
# first_turn at n=8 i=0 i=3: Tensor([8], int64) [0.0000, -1.0000, -2.0000, 0.0000, -3.0000, 0.0000, ... sum -6.000]
# first_turn at n=31 i=1 i=7: Tensor([31], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -49.000]
# first_turn at n=64 i=2 i=8: Tensor([64], int64) [-2.0000, -1.0000, -1.0000, 0.0000, -2.0000, 0.0000, ... sum -90.000]
# any_kind at n=0 i=3 i=31: Shape[0]
# any_kind at n=1 i=7 i=64: Tensor([1], int64) [2.0000]
# any_kind at n=2 i=8 i=0: (Tensor([2], int64) [1.0000, 1.0000], Tensor([2], int64) [1.0000, 1.0000])
# any_kind at n=3 i=31 i=1: Shape[3]
# any_kind at n=7 i=64 i=2: Shape[7]
# any_kind at n=8 i=0 i=3: Shape[8]
# any_kind at n=31 i=1 i=7: Shape[31]
# any_kind at n=64 i=2 i=8: Shape[64]
