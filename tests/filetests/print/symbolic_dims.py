# Dims are printed in normal form: products are multiplied out, constants come last, and min, max and divisions stay.
# test print

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n = T.int64()
        m = T.int64()
        a = R.shape([(n + 1) * (m - 2), n + n, 3 - m + 3, m * n])
        b = R.shape([n // 2, n % 4, T.min(n, m), T.max(n, 3), (n * 4 + 3) // 4])
        return (a, b)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", "m"), dtype="float32")) -> R.Object:
#         n = T.int64()
#         m = T.int64()
#         a: R.Shape([m * n + m - n * 2 - 2, n * 2, 6 - m, m * n]) = R.shape([m * n + m - n * 2 - 2, n * 2, 6 - m, m * n])
#         b: R.Shape([n // 2, n % 4, T.min(m, n), T.max(n, 3), n]) = R.shape([n // 2, n % 4, T.min(m, n), T.max(n, 3), n])
#         return (a, b)
