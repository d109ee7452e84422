# Maximum and mean of windows: padding counts as minus infinity, and in means only on request. `ceil_mode` adds a partial window.
# test run

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(c: R.Tensor((), "bool")) -> R.Object:
        a = R.const([[[-1.0, -2.0, -3.0, -4.0, -5.0]]], "float32")
        x = R.where(c, a, a)
        largest = R.nn.max_pool1d(x, pool_size=[2], strides=[2], padding=[1, 0])
        partial = R.nn.max_pool1d(x, pool_size=[2], strides=[2], ceil_mode=True)
        counted = R.nn.avg_pool1d(x, pool_size=[2], strides=[2], padding=[1, 0], count_include_pad=True)
        not_counted = R.nn.avg_pool1d(x, pool_size=[2], strides=[2], padding=[1, 0], count_include_pad=False)
        return (largest, partial, counted, not_counted)

# expect
# main: (Tensor([1, 1, 3], float32) [-1.0000, -2.0000, -4.0000], Tensor([1, 1, 3], float32) [-1.0000, -3.0000, -5.0000], Tensor([1, 1, 3], float32) [-0.5000, -2.5000, -4.5000], Tensor([1, 1, 3], float32) [-1.0000, -2.5000, -4.5000])
