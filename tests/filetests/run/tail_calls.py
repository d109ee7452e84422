# Tail calls whose result type depends on the sizes of their arguments.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The result's size is that of an argument of unknown size.
    @R.function
    def same_size(x: R.Tensor(("n",), "int64"), i: R.Prim(value="j")) -> R.Tensor(("n",), "int64"):
        n, j = T.int64(), T.int64()
        cls = Module
        if j <= 0:
            return x
        y = R.unique(R.concat([R.arange(n, dtype="int64"), R.arange(n, dtype="int64")]))
        return cls.same_size(y, R.prim_value(j - 1))

    # The result's size is computed from the size of an argument.
    @R.function
    def half(x: R.Tensor(("n",), "int64"), i: R.Prim(value="j")) -> R.Tensor(("n // 2",), "int64"):
        n, j = T.int64(), T.int64()
        cls = Module
        if j <= 0:
            return R.strided_slice(x, axes=[0], begin=[0], end=[n // 2])
        z = R.strided_slice(x, axes=[0], begin=[0], end=[n // 2 * 2])
        return cls.half(z, R.prim_value(j - 1))

    @R.function
    def fields(
        x: R.Tensor(("n",), "int64"), i: R.Prim(value="j")
    ) -> R.Tuple(R.Tensor(("n",), "int64"), R.Shape(["n", 2])):
        n, j = T.int64(), T.int64()
        cls = Module
        if j <= 0:
            return (x, R.shape([n, 2]))
        y = R.reshape(R.reshape(x, (1, n)), (-1,))
        return cls.fields(R.add(x, y), R.prim_value(j - 1))

# expect
# same_size at n=0 j=3 n=31 j=1: Tensor([0], int64) []
# same_size at n=1 j=7 n=64 j=2: Tensor([1], int64) [0.0000]
# same_size at n=2 j=8 n=0 j=3: Tensor([2], int64) [0.0000, 1.0000]
# same_size at n=3 j=31 n=1 j=7: Tensor([3], int64) [0.0000, 1.0000, 2.0000]
# same_size at n=7 j=64 n=2 j=8: Tensor([7], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 21.000]
# same_size at n=8 j=0 n=3 j=31: Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000]
# same_size at n=31 j=1 n=7 j=64: Tensor([31], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 465.000]
# same_size at n=64 j=2 n=8 j=0: Tensor([64], int64) [0.0000, 1.0000, 2.0000, 3.0000, 4.0000, 5.0000, ... sum 2016.000]
# half at n=0 j=3 n=31 j=1: Tensor([0], int64) []
# half at n=1 j=7 n=64 j=2: Tensor([0], int64) []
# half at n=2 j=8 n=0 j=3: Tensor([1], int64) [1.0000]
# half at n=3 j=31 n=1 j=7: Tensor([1], int64) [2.0000]
# half at n=7 j=64 n=2 j=8: Tensor([3], int64) [2.0000, 0.0000, 3.0000]
# half at n=8 j=0 n=3 j=31: Tensor([4], int64) [0.0000, 1.0000, 2.0000, 0.0000]
# half at n=31 j=1 n=7 j=64: Tensor([15], int64) [3.0000, 0.0000, 2.0000, 3.0000, 2.0000, 1.0000, ... sum 24.000]
# half at n=64 j=2 n=8 j=0: Tensor([32], int64) [2.0000, 1.0000, 1.0000, 0.0000, 2.0000, 0.0000, ... sum 43.000]
# fields at n=0 j=3 n=31 j=1: (Tensor([0], int64) [], Shape[0, 2])
# fields at n=1 j=7 n=64 j=2: (Tensor([1], int64) [256.0000], Shape[1, 2])
# fields at n=2 j=8 n=0 j=3: (Tensor([2], int64) [256.0000, 256.0000], Shape[2, 2])
# fields at n=3 j=31 n=1 j=7: (Tensor([3], int64) [4294967296.0000, 0.0000, 6442450944.0000], Shape[3, 2])
# fields at n=7 j=64 n=2 j=8: (Tensor([7], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000], Shape[7, 2])
# fields at n=8 j=0 n=3 j=31: (Tensor([8], int64) [0.0000, 1.0000, 2.0000, 0.0000, 3.0000, 0.0000, ... sum 6.000], Shape[8, 2])
# fields at n=31 j=1 n=7 j=64: (Tensor([31], int64) [6.0000, 0.0000, 4.0000, 6.0000, 4.0000, 2.0000, ... sum 98.000], Shape[31, 2])
# fields at n=64 j=2 n=8 j=0: (Tensor([64], int64) [8.0000, 4.0000, 4.0000, 0.0000, 8.0000, 0.0000, ... sum 360.000], Shape[64, 2])
