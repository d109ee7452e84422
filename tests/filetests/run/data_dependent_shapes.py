# Results whose sizes depend on values, match_casts of them, and shapes as values.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Data-dependent result sizes.
    @R.function
    def where(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=2, dtype="int64"):
        return R.nonzero(R.greater(x, R.const(1, "int64")))

    @R.function
    def refined(x: R.Tensor(("n",), "int64")) -> R.Tensor(ndim=1, dtype="int64"):
        n, m = T.int64(), T.int64()
        y = R.unique(x)
        z = R.match_cast(y, R.Tensor((m,), "int64"))
        return R.add(z, R.arange(m, dtype="int64"))

    # A match_cast that fails has the same message in all execution modes.
    @R.function
    def checked(x: R.Tensor(("n",), "int64")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        y = R.unique(x)
        z = R.match_cast(y, R.Tensor((n,), "int64"))
        return z

    # Shapes as values.
    @R.function
    def shapes(x: R.Tensor(("n",), "int64")) -> R.Tuple(R.Shape(ndim=1), R.Tensor(ndim=1, dtype="int64")):
        s = R.shape_of(x)
        t = R.tensor_to_shape(R.reshape(R.sum(R.ones_like(x)), (1,)))
        return (s, R.zeros(t, "int64"))

# expect
# where at n=0: Tensor([1, 0], int64) []
# where at n=1: Tensor([1, 1], int64) [0.0000]
# where at n=2: Tensor([1, 0], int64) []
# where at n=3: Tensor([1, 2], int64) [0.0000, 2.0000]
# where at n=7: Tensor([1, 2], int64) [0.0000, 2.0000]
# where at n=8: Tensor([1, 2], int64) [2.0000, 4.0000]
# where at n=31: Tensor([1, 16], int64) [0.0000, 2.0000, 3.0000, 4.0000, 6.0000, 7.0000, ... sum 215.000]
# where at n=64: Tensor([1, 30], int64) [0.0000, 4.0000, 6.0000, 7.0000, 8.0000, 10.0000, ... sum 1012.000]
# refined at n=0 m=3: Tensor([0], int64) []
# refined at n=1 m=7: Tensor([1], int64) [2.0000]
# refined at n=2 m=8: Tensor([1], int64) [1.0000]
# refined at n=3 m=31: Tensor([3], int64) [0.0000, 3.0000, 5.0000]
# refined at n=7 m=64: Tensor([4], int64) [0.0000, 2.0000, 4.0000, 6.0000]
# refined at n=8 m=0: Tensor([4], int64) [0.0000, 2.0000, 4.0000, 6.0000]
# refined at n=31 m=1: Tensor([4], int64) [0.0000, 2.0000, 4.0000, 6.0000]
# refined at n=64 m=2: Tensor([4], int64) [0.0000, 2.0000, 4.0000, 6.0000]
# checked at n=0: Tensor([0], int64) []
# checked at n=1: Tensor([1], int64) [2.0000]
# checked at n=2: error: checked: match_cast of 'y' dim 0 must equal n = 2 (from 'x' dim 0), but is 1
# checked at n=3: Tensor([3], int64) [0.0000, 2.0000, 3.0000]
# checked at n=7: error: checked: match_cast of 'y' dim 0 must equal n = 7 (from 'x' dim 0), but is 4
# checked at n=8: error: checked: match_cast of 'y' dim 0 must equal n = 8 (from 'x' dim 0), but is 4
# checked at n=31: error: checked: match_cast of 'y' dim 0 must equal n = 31 (from 'x' dim 0), but is 4
# checked at n=64: error: checked: match_cast of 'y' dim 0 must equal n = 64 (from 'x' dim 0), but is 4
# shapes at n=0: (Shape[0], Tensor([0], int64) [])
# shapes at n=1: (Shape[1], Tensor([1], int64) [0.0000])
# shapes at n=2: (Shape[2], Tensor([2], int64) [0.0000, 0.0000])
# shapes at n=3: (Shape[3], Tensor([3], int64) [0.0000, 0.0000, 0.0000])
# shapes at n=7: (Shape[7], Tensor([7], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000])
# shapes at n=8: (Shape[8], Tensor([8], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000])
# shapes at n=31: (Shape[31], Tensor([31], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000])
# shapes at n=64: (Shape[64], Tensor([64], int64) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000])
