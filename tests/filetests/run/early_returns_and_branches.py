# Early returns, and variables that both arms of a branch assign.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Early returns: in either branch, nested, and after a branch that does not return.
    @R.function
    def early(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        if n < 2:
            return R.add(x, x)
        y = R.multiply(x, R.const(3, "int64"))
        if n > 8:
            return y
        elif n == 3:
            z = R.negative(y)
        else:
            z = y
            if n == 7:
                return R.subtract(x, y)
        return R.add(z, R.const(1, "int64"))

    @R.function
    def both(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        if n % 2 == 0:
            if n > 10:
                return R.add(x, x)
            else:
                return x
        else:
            return R.negative(x)

    # Several variables are merged after a branch, with the most specific type that covers both values.
    @R.function
    def joined(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        if n < 3:
            a = R.concat([x, x])
            b = x
        else:
            b = R.negative(x)
            a = b
        return R.concat([a, b])

    # A variable assigned in one branch keeps its value in the other.
    @R.function
    def one_sided(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = R.add(x, x)
        z = x
        if n > 3:
            y = R.negative(y)
        if n > 2 and n < 9:
            y = R.add(y, x)
        else:
            z = y
        return R.multiply(y, z)

    # Conditions are tensors of rank 0 or scalar parameters.
    @R.function
    def by_value(c: R.Tensor((), "bool"), k: R.Prim("int64"), x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        if c:
            y = x
        else:
            y = R.negative(x)
        if k > n // 2:
            z = R.add(y, y)
        else:
            z = y
        return z

    # Comparisons of elements are conditions, inside a branch too.
    @R.function
    def by_element(x: R.Tensor(("n",), "int64")) -> R.Tensor((), "int64"):
        total = R.sum(x)
        if R.greater(total, R.const(10, "int64")):
            if R.greater(total, R.const(40, "int64")):
                r = R.const(2, "int64")
            else:
                r = R.const(1, "int64")
        else:
            r = total
        return r

    # Branches return different kinds of value, as their types declare.
    @R.function
    def any_kind(x: R.Tensor(("n",), "int64")) -> R.Object:
        n = T.int64()
        if n == 1:
            return (x, x)
        return x

    # Branches define symbols and contain dataflow blocks.
    @R.function
    def inner_symbols(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n = T.int64()
        if n > 1:
            m = T.int64()
            u = R.unique(x)
            v = R.match_cast(u, R.Tensor((m,), "int64"))
            with R.dataflow():
                a = R.add(v, v)
                w = R.concat([a, v])
                R.output(w)
            r = R.reshape(w, (2 * m,))
        else:
            r = x
        return r

    # Assignments only in nested branches and loops.
    @R.function
    def deep(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        if n > 1:
            if n > 2:
                y = R.add(y, R.const(10, "int64"))
                if n > 7:
                    y = R.negative(y)
        for i in R.range(2):
            if i == 1:
                y = R.add(y, R.const(100, "int64"))
        return y

    @R.function
    def loop_in_branch(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = x
        if n > 2:
            for i in R.range(3):
                y = R.add(y, x)
        return y

# expect
# early at n=0: Tensor([0], int64) []
# early at n=1: Tensor([1], int64) [4.0000]
# early at n=2: Tensor([2], int64) [4.0000, 4.0000]
# early at n=3: Tensor([3], int64) [-5.0000, 1.0000, -8.0000]
# early at n=7: Tensor([7], int64) [-4.0000, 0.0000, -6.0000, -2.0000, -2.0000, 0.0000, ... sum -16.000]
# early at n=8: Tensor([8], int64) [1.0000, 4.0000, 7.0000, 1.0000, 10.0000, 1.0000, ... sum 26.000]
# early at n=31: Tensor([31], int64) [9.0000, 0.0000, 6.0000, 9.0000, 6.0000, 3.0000, ... sum 147.000]
# early at n=64: Tensor([64], int64) [6.0000, 3.0000, 3.0000, 0.0000, 6.0000, 0.0000, ... sum 270.000]
# both at n=0: Tensor([0], int64) []
# both at n=1: Tensor([1], int64) [-2.0000]
# both at n=2: Tensor([2], int64) [1.0000, 1.0000]
# both at n=3: Tensor([3], int64) [-2.0000, 0.0000, -3.0000]
# both at n=7: Tensor([7], int64) [-2.0000, 0.0000, -3.0000, -1.0000, -1.0000, 0.0000, ... sum -8.000]
# both at n=8: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# both at n=31: Tensor([31], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -49.000]
# both at n=64: Tensor([64], int64) [4.0000, 2.0000, 2.0000, 0.0000, 4.0000, 0.0000, ... sum 180.000]
# joined at n=0: Tensor([0], int64) []
# joined at n=1: Tensor([3], int64) [2.0000, 2.0000, 2.0000]
# joined at n=2: Tensor([6], int64) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000]
# joined at n=3: Tensor([6], int64) [-2.0000, 0.0000, -3.0000, -2.0000, 0.0000, -3.0000]
# joined at n=7: Tensor([14], int64) [-2.0000, 0.0000, -3.0000, -1.0000, -1.0000, 0.0000, ... sum -16.000]
# joined at n=8: Tensor([16], int64) [0.0000, -1.0000, -2.0000, 0.0000, -3.0000, 0.0000, ... sum -12.000]
# joined at n=31: Tensor([62], int64) [-3.0000, 0.0000, -2.0000, -3.0000, -2.0000, -1.0000, ... sum -98.000]
# joined at n=64: Tensor([128], int64) [-2.0000, -1.0000, -1.0000, 0.0000, -2.0000, 0.0000, ... sum -180.000]
# one_sided at n=0: Tensor([0], int64) []
# one_sided at n=1: Tensor([1], int64) [16.0000]
# one_sided at n=2: Tensor([2], int64) [4.0000, 4.0000]
# one_sided at n=3: Tensor([3], int64) [12.0000, 0.0000, 27.0000]
# one_sided at n=7: Tensor([7], int64) [-4.0000, 0.0000, -9.0000, -1.0000, -1.0000, 0.0000, ... sum -16.000]
# one_sided at n=8: Tensor([8], int64) [0.0000, -1.0000, -4.0000, 0.0000, -9.0000, 0.0000, ... sum -14.000]
# one_sided at n=31: Tensor([31], int64) [36.0000, 0.0000, 16.0000, 36.0000, 16.0000, 4.0000, ... sum 468.000]
# one_sided at n=64: Tensor([64], int64) [16.0000, 4.0000, 4.0000, 0.0000, 16.0000, 0.0000, ... sum 840.000]
# by_value at n=0 k=3: Tensor([0], int64) []
# by_value at n=1 k=7: Tensor([1], int64) [-4.0000]
# by_value at n=2 k=8: Tensor([2], int64) [2.0000, 2.0000]
# by_value at n=3 k=31: Tensor([3], int64) [0.0000, -6.0000, -4.0000]
# by_value at n=7 k=64: Tensor([7], int64) [0.0000, -6.0000, -2.0000, -2.0000, 0.0000, -2.0000, ... sum -18.000]
# by_value at n=8 k=0: Tensor([8], int64) [-1.0000, -2.0000, 0.0000, -3.0000, 0.0000, 0.0000, ... sum -9.000]
# by_value at n=31 k=1: Tensor([31], int64) [0.0000, 2.0000, 3.0000, 2.0000, 1.0000, 2.0000, ... sum 46.000]
# by_value at n=64 k=2: Tensor([64], int64) [-1.0000, -1.0000, 0.0000, -2.0000, 0.0000, -3.0000, ... sum -91.000]
# by_element at n=0: Tensor([], int64) [0.0000]
# by_element at n=1: Tensor([], int64) [2.0000]
# by_element at n=2: Tensor([], int64) [2.0000]
# by_element at n=3: Tensor([], int64) [5.0000]
# by_element at n=7: Tensor([], int64) [8.0000]
# by_element at n=8: Tensor([], int64) [6.0000]
# by_element at n=31: Tensor([], int64) [2.0000]
# by_element at n=64: Tensor([], int64) [2.0000]
# any_kind at n=0: Tensor([0], int64) []
# any_kind at n=1: (Tensor([1], int64) [2.0000], Tensor([1], int64) [2.0000])
# any_kind at n=2: Tensor([2], int64) [1.0000, 1.0000]
# any_kind at n=3: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# any_kind at n=7: Tensor([7], int64) [2.0000, 0.0000, 3.0000, 1.0000, 1.0000, 0.0000, ... sum 8.000]
# any_kind at n=8: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# any_kind at n=31: Tensor([31], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 49.000]
# any_kind at n=64: Tensor([64], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 90.000]
# inner_symbols at n=0 m=3: Tensor([0], int64) []
# inner_symbols at n=1 m=7: Tensor([1], int64) [2.0000]
# inner_symbols at n=2 m=8: Tensor([2], int64) [2.0000, 1.0000]
# inner_symbols at n=3 m=31: Tensor([6], int64) [0.0000, 4.0000, 6.0000, 0.0000, 2.0000, 3.0000]
# inner_symbols at n=7 m=64: Tensor([8], int64) [0.0000, 2.0000, 4.0000, 6.0000, 0.0000, 1.0000, ... sum 18.000]
# inner_symbols at n=8 m=0: Tensor([8], int64) [0.0000, 2.0000, 4.0000, 6.0000, 0.0000, 1.0000, ... sum 18.000]
# inner_symbols at n=31 m=1: Tensor([8], int64) [0.0000, 2.0000, 4.0000, 6.0000, 0.0000, 1.0000, ... sum 18.000]
# inner_symbols at n=64 m=2: Tensor([8], int64) [0.0000, 2.0000, 4.0000, 6.0000, 0.0000, 1.0000, ... sum 18.000]
# deep at n=0 i=3 i=31: Tensor([0], int64) []
# deep at n=1 i=7 i=64: Tensor([1], int64) [102.0000]
# deep at n=2 i=8 i=0: Tensor([2], int64) [101.0000, 101.0000]
# deep at n=3 i=31 i=1: Tensor([3], int64) [112.0000, 110.0000, 113.0000]
# deep at n=7 i=64 i=2: Tensor([7], int64) [112.0000, 110.0000, 113.0000, 111.0000, 111.0000, 110.0000, ... sum 778.000]
# deep at n=8 i=0 i=3: Tensor([8], int64) [90.0000, 89.0000, 88.0000, 90.0000, 87.0000, 90.0000, ... sum 714.000]
# deep at n=31 i=1 i=7: Tensor([31], int64) [87.0000, 90.0000, 88.0000, 87.0000, 88.0000, 89.0000, ... sum 2741.000]
# deep at n=64 i=2 i=8: Tensor([64], int64) [88.0000, 89.0000, 89.0000, 90.0000, 88.0000, 90.0000, ... sum 5670.000]
# loop_in_branch at n=0 i=3 i=31: Tensor([0], int64) []
# loop_in_branch at n=1 i=7 i=64: Tensor([1], int64) [2.0000]
# loop_in_branch at n=2 i=8 i=0: Tensor([2], int64) [1.0000, 1.0000]
# loop_in_branch at n=3 i=31 i=1: Tensor([3], int64) [8.0000, 0.0000, 12.0000]
# loop_in_branch at n=7 i=64 i=2: Tensor([7], int64) [8.0000, 0.0000, 12.0000, 4.0000, 4.0000, 0.0000, ... sum 32.000]
# loop_in_branch at n=8 i=0 i=3: Tensor([8], int64) [0.0000, 4.0000, 8.0000, 0.0000, 12.0000, 0.0000, ... sum 24.000]
# loop_in_branch at n=31 i=1 i=7: Tensor([31], int64) [12.0000, 0.0000, 8.0000, 12.0000, 8.0000, 4.0000, ... sum 196.000]
# loop_in_branch at n=64 i=2 i=8: Tensor([64], int64) [8.0000, 4.0000, 4.0000, 0.0000, 8.0000, 0.0000, ... sum 360.000]
