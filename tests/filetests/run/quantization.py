# Quantizing rounds ties to even and saturates; dequantizing subtracts the zero point first.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([0.25, 0.75, -0.75, 100.0, -100.0, float("nan")], "float32")
        x = R.where(c, a, a)
        q = R.quantize(x, R.const(0.5, "float32"), R.const(3, "int8"), out_dtype="int8")
        u = R.quantize(x, R.const(0.5, "float32"), R.const(3, "uint8"), out_dtype="uint8")
        return (q, u, R.dequantize(q, R.const(0.5, "float32"), R.const(3, "int8")))

# expect
# main: (Tensor([6], int8) [3.0000, 5.0000, 1.0000, 127.0000, -128.0000, 0.0000], Tensor([6], uint8) [3.0000, 5.0000, 1.0000, 203.0000, 0.0000, 0.0000], Tensor([6], float32) [0.0000, 1.0000, -1.0000, 62.0000, -65.5000, -1.5000])
