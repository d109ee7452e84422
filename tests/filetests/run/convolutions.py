# A filter moves over a row with padding, strides and dilation; the result may be empty.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[[1.0, 2.0, 3.0, 4.0, 5.0]]], "float32")
        x = R.where(c, a, a)
        plain = R.nn.conv1d(x, R.const([[[1.0, 0.0, -1.0]]], "float32"))
        padded = R.nn.conv1d(x, R.const([[[1.0, 0.0, -1.0]]], "float32"), padding=[1, 1])
        strided = R.nn.conv1d(x, R.const([[[1.0, 0.0, -1.0]]], "float32"), strides=2)
        dilated = R.nn.conv1d(x, R.const([[[1.0, 0.0, -1.0]]], "float32"), dilation=2)
        transposed = R.nn.conv1d_transpose(x, R.const([[[1.0, 0.0, -1.0]]], "float32"))
        return (plain, padded, strided, dilated, transposed)

    @R.function
    def sizes(x: R.Tensor((1, 1, "n + 1"), "float32")) -> R.Object:
        n = T.int64()
        y = R.ones(R.shape([1, 1, n + 1]), "float32")
        return R.nn.conv1d(y, R.const([[[1.0, 2.0]]], "float32"))

# expect
# main: (Tensor([1, 1, 3], float32) [-2.0000, -2.0000, -2.0000], Tensor([1, 1, 5], float32) [-2.0000, -2.0000, -2.0000, -2.0000, 4.0000], Tensor([1, 1, 2], float32) [-2.0000, -2.0000], Tensor([1, 1, 1], float32) [-4.0000], Tensor([1, 1, 7], float32) [1.0000, 2.0000, 2.0000, 2.0000, 2.0000, -4.0000, ... sum 0.000])
# sizes at n=0: Tensor([1, 1, 0], float32) []
# sizes at n=1: Tensor([1, 1, 1], float32) [3.0000]
# sizes at n=2: Tensor([1, 1, 2], float32) [3.0000, 3.0000]
# sizes at n=3: Tensor([1, 1, 3], float32) [3.0000, 3.0000, 3.0000]
# sizes at n=7: Tensor([1, 1, 7], float32) [3.0000, 3.0000, 3.0000, 3.0000, 3.0000, 3.0000, ... sum 21.000]
# sizes at n=8: Tensor([1, 1, 8], float32) [3.0000, 3.0000, 3.0000, 3.0000, 3.0000, 3.0000, ... sum 24.000]
# sizes at n=31: Tensor([1, 1, 31], float32) [3.0000, 3.0000, 3.0000, 3.0000, 3.0000, 3.0000, ... sum 93.000]
# sizes at n=64: Tensor([1, 1, 64], float32) [3.0000, 3.0000, 3.0000, 3.0000, 3.0000, 3.0000, ... sum 192.000]
