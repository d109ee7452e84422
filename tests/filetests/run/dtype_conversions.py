# Floats become integers by truncation and saturate; NaN becomes 0. Integers keep their low bits, and anything but 0 is true.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def to_integers(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([1.9, -1.9, 300.0, -300.0, float("nan"), float("inf")], "float32")
        x = R.where(c, a, a)
        return (R.astype(x, "int8"), R.astype(x, "uint8"), R.astype(x, "bool"))

    @R.function
    def narrower(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([256, 257, -1, 128, 65536], "int32")
        x = R.where(c, a, a)
        return (R.astype(x, "int8"), R.astype(x, "uint8"), R.astype(x, "bool"), R.astype(x, "float16"))

    @R.function
    def rounded(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([65519.0, 65520.0, 1.00048828125, 257.0, 259.0], "float32")
        x = R.where(c, a, a)
        return (R.astype(x, "float16"), R.astype(x, "bfloat16"))

# expect
# to_integers: (Tensor([6], int8) [1.0000, -1.0000, 127.0000, -128.0000, 0.0000, 127.0000], Tensor([6], uint8) [1.0000, 0.0000, 255.0000, 0.0000, 0.0000, 255.0000], Tensor([6], bool) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000, 1.0000])
# narrower: (Tensor([5], int8) [0.0000, 1.0000, -1.0000, -128.0000, 0.0000], Tensor([5], uint8) [0.0000, 1.0000, 255.0000, 128.0000, 0.0000], Tensor([5], bool) [1.0000, 1.0000, 1.0000, 1.0000, 1.0000], Tensor([5], float16) [256.0000, 257.0000, -1.0000, 128.0000, inf])
# rounded: (Tensor([5], float16) [65504.0000, inf, 1.0000, 257.0000, 259.0000], Tensor([5], bfloat16) [65536.0000, 65536.0000, 1.0000, 256.0000, 260.0000])
