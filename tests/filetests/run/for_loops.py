# Loops over ranges in graph functions, with steps of both signs and with values that grow.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def count(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        for i in R.range(n):
            y = R.add(y, x)
        return y

    # The loop counter is used as a size.
    @R.function
    def triangle(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        total = R.const(0, "int64")
        for i in R.range(2, n, 3):
            row = R.full((i, n), R.const(1, "int64"), "int64")
            total = R.add(total, R.sum(row))
        return total

    @R.function
    def down(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        y = x
        for i in R.range(3, -1, -2):
            y = R.concat([y, R.full((i,), R.const(7, "int64"), "int64")])
        return y

    # A cache grows by a row in each iteration; another value keeps its shape.
    @R.function
    def cache(x: R.Tensor(("n", 2), "int64")) -> R.Tuple(R.Tensor(ndim=2, dtype="int64"), R.Tensor(("n", 2), "int64")):
        n = T.int64()
        k = R.zeros((0, 2), "int64")
        last = x
        for i in R.range(3):
            last = R.add(last, x)
            k = R.concat([k, R.reshape(R.sum(last, axis=0), (1, 2))])
        return (k, last)

    # Nested loops, loops in branches, and branches in loops; loop-carried scalars are used as sizes.
    @R.function
    def nested(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        y = x
        size = 1
        if n > 1:
            for i in R.range(2):
                for j in R.range(i + 1):
                    if j == 0:
                        y = R.concat([y, R.full((size,), R.const(5, "int64"), "int64")])
                    size = size + 1
        else:
            y = R.negative(x)
        return y

    # Zero iterations, and variables that exist only in the body.
    @R.function
    def no_turn(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        for i in R.range(n, 0):
            t = R.add(y, x)
            y = R.multiply(t, t)
        return y

    # Loop-carried types are widened: rank, data type.
    @R.function
    def until(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        n = T.int64()
        i = R.const(1, "int64")
        while R.less(i, R.sum(x)):
            i = R.multiply(i, R.const(2, "int64"))
        return i

    @R.function
    def halve(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        k = n
        y = x
        while k > 2:
            k = k // 2
            y = R.strided_slice(y, axes=[0], begin=[0], end=[k])
        return y

    # Lambdas as condition and body.
    @R.function
    def lambdas(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        state = R.while_loop(
            lambda i, y: R.less(i, R.const(4, "int64")),
            lambda i, y: (R.add(i, R.const(1, "int64")), R.add(y, x)),
            R.const(0, "int64"),
            x,
        )
        return state[1]

    @R.function
    def with_dataflow(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        for i in R.range(2):
            with R.dataflow():
                a = R.add(y, x)
                y = R.multiply(a, x)
                R.output(y)
        return y

    # The outer loop's body captures the initial value of the inner loop and reads it in each iteration.
    @R.function
    def starts_again(a: R.Tensor(("n",), "int64"), b: R.Tensor(("n",), "int64"), k: R.Prim("int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        for j in R.range(k):
            a = b
            for i in R.range(2):
                a = R.add(a, a)
        return R.add(a, b)

    @R.function
    def starts_again_of_pair(x: R.Tensor(("n",), "int64"), k: R.Prim("int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        e = R.add(x, x)
        t = (x, e)
        y = x
        for j in R.range(3):
            c = t
            for i in R.range(k):
                c = (c[1], R.add(c[0], c[1]))
            y = R.add(y, c[0])
        return y

# expect
# count at n=0 i=3 i=31: Tensor([0], int64) []
# count at n=1 i=7 i=64: Tensor([1], int64) [4.0000]
# count at n=2 i=8 i=0: Tensor([2], int64) [3.0000, 3.0000]
# count at n=3 i=31 i=1: Tensor([3], int64) [8.0000, 0.0000, 12.0000]
# count at n=7 i=64 i=2: Tensor([7], int64) [16.0000, 0.0000, 24.0000, 8.0000, 8.0000, 0.0000, ... sum 64.000]
# count at n=8 i=0 i=3: Tensor([8], int64) [0.0000, 9.0000, 18.0000, 0.0000, 27.0000, 0.0000, ... sum 54.000]
# count at n=31 i=1 i=7: Tensor([31], int64) [96.0000, 0.0000, 64.0000, 96.0000, 64.0000, 32.0000, ... sum 1568.000]
# count at n=64 i=2 i=8: Tensor([64], int64) [130.0000, 65.0000, 65.0000, 0.0000, 130.0000, 0.0000, ... sum 5850.000]
# triangle at n=0 i=3 i=31: Tensor([], int64) [0.0000]
# triangle at n=1 i=7 i=64: Tensor([], int64) [0.0000]
# triangle at n=2 i=8 i=0: Tensor([], int64) [0.0000]
# triangle at n=3 i=31 i=1: Tensor([], int64) [6.0000]
# triangle at n=7 i=64 i=2: Tensor([], int64) [49.0000]
# triangle at n=8 i=0 i=3: Tensor([], int64) [56.0000]
# triangle at n=31 i=1 i=7: Tensor([], int64) [4805.0000]
# triangle at n=64 i=2 i=8: Tensor([], int64) [43008.0000]
# down at n=0 i=3 y_0=31 i=1 y_0=7: Tensor([4], int64) [7.0000, 7.0000, 7.0000, 7.0000]
# down at n=1 i=7 y_0=64 i=2 y_0=8: Tensor([5], int64) [2.0000, 7.0000, 7.0000, 7.0000, 7.0000]
# down at n=2 i=8 y_0=0 i=3 y_0=31: Tensor([6], int64) [1.0000, 1.0000, 7.0000, 7.0000, 7.0000, 7.0000]
# down at n=3 i=31 y_0=1 i=7 y_0=64: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 7.0000, 7.0000, 7.0000, ... sum 33.000]
# down at n=7 i=64 y_0=2 i=8 y_0=0: Tensor([11], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 36.000]
# down at n=8 i=0 y_0=3 i=31 y_0=1: Tensor([12], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 34.000]
# down at n=31 i=1 y_0=7 i=64 y_0=2: Tensor([35], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 77.000]
# down at n=64 i=2 y_0=8 i=0 y_0=3: Tensor([68], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 118.000]
# cache at n=0 i=3 k_0=31 i=1 k_0=7: (Tensor([3, 2], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000], Tensor([0, 2], int64) [])
# cache at n=1 i=7 k_0=64 i=2 k_0=8: (Tensor([3, 2], int64) [4.0000, 4.0000, 6.0000, 6.0000, 8.0000, 8.0000], Tensor([1, 2], int64) [8.0000, 8.0000])
# cache at n=2 i=8 k_0=0 i=3 k_0=31: (Tensor([3, 2], int64) [4.0000, 8.0000, 6.0000, 12.0000, 8.0000, 16.0000], Tensor([2, 2], int64) [4.0000, 4.0000, 4.0000, 12.0000])
# cache at n=3 i=31 k_0=1 i=7 k_0=64: (Tensor([3, 2], int64) [12.0000, 6.0000, 18.0000, 9.0000, 24.0000, 12.0000], Tensor([3, 2], int64) [8.0000, 0.0000, 12.0000, 8.0000, 4.0000, 4.0000])
# cache at n=7 i=64 k_0=2 i=8 k_0=0: (Tensor([3, 2], int64) [26.0000, 16.0000, 39.0000, 24.0000, 52.0000, 32.0000], Tensor([7, 2], int64) [8.0000, 0.0000, 12.0000, 4.0000, 4.0000, 0.0000, ... sum 84.000])
# cache at n=8 i=0 k_0=3 i=31 k_0=1: (Tensor([3, 2], int64) [24.0000, 14.0000, 36.0000, 21.0000, 48.0000, 28.0000], Tensor([8, 2], int64) [0.0000, 4.0000, 8.0000, 0.0000, 12.0000, 0.0000, ... sum 76.000])
# cache at n=31 i=1 k_0=7 i=64 k_0=2: (Tensor([3, 2], int64) [110.0000, 94.0000, 165.0000, 141.0000, 220.0000, 188.0000], Tensor([31, 2], int64) [12.0000, 0.0000, 8.0000, 12.0000, 8.0000, 4.0000, ... sum 408.000])
# cache at n=64 i=2 k_0=8 i=0 k_0=3: (Tensor([3, 2], int64) [226.0000, 150.0000, 339.0000, 225.0000, 452.0000, 300.0000], Tensor([64, 2], int64) [8.0000, 4.0000, 4.0000, 0.0000, 8.0000, 0.0000, ... sum 752.000])
# nested at n=0 i=3 y_0=31 size=1 i=7 y_0=64 size=2 j=8 y_0=0 size=3 j=31 y_0=1 size=7: Tensor([0], int64) []
# nested at n=1 i=7 y_0=64 size=2 i=8 y_0=0 size=3 j=31 y_0=1 size=7 j=64 y_0=2 size=8: Tensor([1], int64) [-2.0000]
# nested at n=2 i=8 y_0=0 size=3 i=31 y_0=1 size=7 j=64 y_0=2 size=8 j=0 y_0=3 size=31: Tensor([5], int64) [1.0000, 1.0000, 5.0000, 5.0000, 5.0000]
# nested at n=3 i=31 y_0=1 size=7 i=64 y_0=2 size=8 j=0 y_0=3 size=31 j=1 y_0=7 size=64: Tensor([6], int64) [2.0000, 0.0000, 3.0000, 5.0000, 5.0000, 5.0000]
# nested at n=7 i=64 y_0=2 size=8 i=0 y_0=3 size=31 j=1 y_0=7 size=64 j=2 y_0=8 size=0: Tensor([10], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 23.000]
# nested at n=8 i=0 y_0=3 size=31 i=1 y_0=7 size=64 j=2 y_0=8 size=0 j=3 y_0=31 size=1: Tensor([11], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 21.000]
# nested at n=31 i=1 y_0=7 size=64 i=2 y_0=8 size=0 j=3 y_0=31 size=1 j=7 y_0=64 size=2: Tensor([34], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 64.000]
# nested at n=64 i=2 y_0=8 size=0 i=3 y_0=31 size=1 j=7 y_0=64 size=2 j=8 y_0=0 size=3: Tensor([67], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 105.000]
# no_turn at n=0 i=3 i=31: Tensor([0], int64) []
# no_turn at n=1 i=7 i=64: Tensor([1], int64) [2.0000]
# no_turn at n=2 i=8 i=0: Tensor([2], int64) [1.0000, 1.0000]
# no_turn at n=3 i=31 i=1: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# no_turn at n=7 i=64 i=2: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000]
# no_turn at n=8 i=0 i=3: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# no_turn at n=31 i=1 i=7: Tensor([31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000]
# no_turn at n=64 i=2 i=8: Tensor([64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000]
# until at n=0: Tensor([], int64) [1.0000]
# until at n=1: Tensor([], int64) [2.0000]
# until at n=2: Tensor([], int64) [2.0000]
# until at n=3: Tensor([], int64) [8.0000]
# until at n=7: Tensor([], int64) [8.0000]
# until at n=8: Tensor([], int64) [8.0000]
# until at n=31: Tensor([], int64) [64.0000]
# until at n=64: Tensor([], int64) [128.0000]
# halve at n=0 k=3 y_0=31 k=1 y_0=7: Tensor([0], int64) []
# halve at n=1 k=7 y_0=64 k=2 y_0=8: Tensor([1], int64) [2.0000]
# halve at n=2 k=8 y_0=0 k=3 y_0=31: Tensor([2], int64) [1.0000, 1.0000]
# halve at n=3 k=31 y_0=1 k=7 y_0=64: Tensor([1], int64) [2.0000]
# halve at n=7 k=64 y_0=2 k=8 y_0=0: Tensor([1], int64) [2.0000]
# halve at n=8 k=0 y_0=3 k=31 y_0=1: Tensor([2], int64) [0.0000, 1.0000]
# halve at n=31 k=1 y_0=7 k=64 y_0=2: Tensor([1], int64) [3.0000]
# halve at n=64 k=2 y_0=8 k=0 y_0=3: Tensor([2], int64) [2.0000, 1.0000]
# lambdas at n=0: Tensor([0], int64) []
# lambdas at n=1: Tensor([1], int64) [10.0000]
# lambdas at n=2: Tensor([2], int64) [5.0000, 5.0000]
# lambdas at n=3: Tensor([3], int64) [10.0000, 0.0000, 15.0000]
# lambdas at n=7: Tensor([7], int64) [10.0000, 0.0000, 15.0000, 5.0000, 5.0000, 0.0000, ... sum 40.000]
# lambdas at n=8: Tensor([8], int64) [0.0000, 5.0000, 10.0000, 0.0000, 15.0000, 0.0000, ... sum 30.000]
# lambdas at n=31: Tensor([31], int64) [15.0000, 0.0000, 10.0000, 15.0000, 10.0000, 5.0000, ... sum 245.000]
# lambdas at n=64: Tensor([64], int64) [10.0000, 5.0000, 5.0000, 0.0000, 10.0000, 0.0000, ... sum 450.000]
# with_dataflow at n=0 i=3 i=31: Tensor([0], int64) []
# with_dataflow at n=1 i=7 i=64: Tensor([1], int64) [20.0000]
# with_dataflow at n=2 i=8 i=0: Tensor([2], int64) [3.0000, 3.0000]
# with_dataflow at n=3 i=31 i=1: Tensor([3], int64) [20.0000, 0.0000, 63.0000]
# with_dataflow at n=7 i=64 i=2: Tensor([7], int64) [20.0000, 0.0000, 63.0000, 3.0000, 3.0000, 0.0000, ... sum 92.000]
# with_dataflow at n=8 i=0 i=3: Tensor([8], int64) [0.0000, 3.0000, 20.0000, 0.0000, 63.0000, 0.0000, ... sum 86.000]
# with_dataflow at n=31 i=1 i=7: Tensor([31], int64) [63.0000, 0.0000, 20.0000, 63.0000, 20.0000, 3.0000, ... sum 731.000]
# with_dataflow at n=64 i=2 i=8: Tensor([64], int64) [20.0000, 3.0000, 3.0000, 0.0000, 20.0000, 0.0000, ... sum 1290.000]
# starts_again at n=0 m=3 j=31 i=1 i=7 j=64: Tensor([0], int64) []
# starts_again at n=1 m=7 j=64 i=2 i=8 j=0: Tensor([1], int64) [10.0000]
# starts_again at n=2 m=8 j=0 i=3 i=31 j=1: Tensor([2], int64) [5.0000, 15.0000]
# starts_again at n=3 m=31 j=1 i=7 i=64 j=2: Tensor([3], int64) [10.0000, 5.0000, 5.0000]
# starts_again at n=7 m=64 j=2 i=8 i=0 j=3: Tensor([7], int64) [15.0000, 0.0000, 15.0000, 15.0000, 0.0000, 15.0000, ... sum 65.000]
# starts_again at n=8 m=0 j=3 i=31 i=1 j=7: Tensor([8], int64) [15.0000, 10.0000, 5.0000, 5.0000, 0.0000, 5.0000, ... sum 65.000]
# starts_again at n=31 m=1 j=7 i=64 i=2 j=8: Tensor([31], int64) [0.0000, 0.0000, 10.0000, 5.0000, 15.0000, 0.0000, ... sum 265.000]
# starts_again at n=64 m=2 j=8 i=0 i=3 j=31: Tensor([64], int64) [15.0000, 0.0000, 5.0000, 10.0000, 5.0000, 5.0000, ... sum 490.000]
# starts_again_of_pair at n=0 j=3 m=31 i=1 i=7 j=64: Tensor([0], int64) []
# starts_again_of_pair at n=1 j=7 m=64 i=2 i=8 j=0: Tensor([1], int64) [14.0000]
# starts_again_of_pair at n=2 j=8 m=0 i=3 i=31 j=1: Tensor([2], int64) [10.0000, 10.0000]
# starts_again_of_pair at n=3 j=31 m=1 i=7 i=64 j=2: Tensor([3], int64) [32.0000, 0.0000, 48.0000]
# starts_again_of_pair at n=7 j=64 m=2 i=8 i=0 j=3: Tensor([7], int64) [206.0000, 0.0000, 309.0000, 103.0000, 103.0000, 0.0000, ... sum 824.000]
# starts_again_of_pair at n=8 j=0 m=3 i=31 i=1 j=7: Tensor([8], int64) [0.0000, 166.0000, 332.0000, 0.0000, 498.0000, 0.0000, ... sum 996.000]
# starts_again_of_pair at n=31 j=1 m=7 i=64 i=2 j=8: Tensor([31], int64) [31721205.0000, 0.0000, 21147470.0000, 31721205.0000, 21147470.0000, 10573735.0000, ... sum 518113015.000]
# starts_again_of_pair at n=64 j=2 m=8 i=0 i=3 j=31: Tensor([64], int64) [166667340211730.0000, 83333670105865.0000, 83333670105865.0000, 0.0000, 166667340211730.0000, 0.0000, ... sum 7500030309527850.000]
