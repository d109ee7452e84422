# test verify
# fails: PL0226 is a condition
# fails: PL0226 is a condition
from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A dim must be an integer; a comparison is a condition.
    @R.function
    def main(x: R.Tensor(("n", 2, 3), "int32")) -> R.Object:
        n = T.int64()
        a = R.reshape(x, R.shape([n == 2, 3]))
        return a
