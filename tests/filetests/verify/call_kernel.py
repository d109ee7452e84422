# test verify
# Calls of library kernels that do not match the declaration of the kernel.
# fails: kernel pool has no operand or attribute 'mode'
# fails: operand x of kernel pool is float64, expected float32
# fails: operand x of kernel pool has 4 dims, expected (batch, channels, in_depth, in_height, in_width)
# fails: attribute kind of kernel pool is missing
# fails: attribute kernel_shape of kernel pool takes a list of 3 integers
# fails: operand x of kernel transpose has 2 dims, but axes for 3: [0, 2, 1]
# fails: axes: [0, 0] do not name each dim of x once
# fails: kernel transpose writes out, but there are 2 results

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def unknown_attribute(x: R.Tensor(("n", 2, 1, 4, 4), "float32")) -> R.Object:
        n = T.int64()
        return R.call_kernel("pool", x=x, mode="max", kernel_shape=[1, 2, 2], out_sinfo=R.Tensor((n, 2, 1, 3, 3), "float32"))

    @R.function
    def dtype(x: R.Tensor(("n", 2, 1, 4, 4), "float64")) -> R.Object:
        n = T.int64()
        return R.call_kernel("pool", x=x, kind="max", kernel_shape=[1, 2, 2], out_sinfo=R.Tensor((n, 2, 1, 3, 3), "float32"))

    @R.function
    def rank(x: R.Tensor(("n", 2, 4, 4), "float32")) -> R.Object:
        n = T.int64()
        return R.call_kernel("pool", x=x, kind="max", kernel_shape=[1, 2, 2], out_sinfo=R.Tensor((n, 2, 1, 3, 3), "float32"))

    @R.function
    def missing_attribute(x: R.Tensor(("n", 2, 1, 4, 4), "float32")) -> R.Object:
        n = T.int64()
        return R.call_kernel("pool", x=x, kernel_shape=[1, 2, 2], out_sinfo=R.Tensor((n, 2, 1, 3, 3), "float32"))

    @R.function
    def short_list(x: R.Tensor(("n", 2, 1, 4, 4), "float32")) -> R.Object:
        n = T.int64()
        return R.call_kernel("pool", x=x, kind="max", kernel_shape=[2, 2], out_sinfo=R.Tensor((n, 2, 1, 3, 3), "float32"))

    @R.function
    def other_axes(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n, m = T.int64(), T.int64()
        return R.call_kernel("transpose", x=x, axes={"x": [0, 2, 1]}, out_sinfo=R.Tensor((m, n), "float32"))

    @R.function
    def repeated_axis(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n, m = T.int64(), T.int64()
        return R.call_kernel("transpose", x=x, axes={"x": [0, 0]}, out_sinfo=R.Tensor((m, n), "float32"))

    @R.function
    def results(x: R.Tensor(("n", "m"), "float32")) -> R.Object:
        n, m = T.int64(), T.int64()
        return R.call_kernel(
            "transpose", x=x, axes={"x": [1, 0]}, out_sinfo=[R.Tensor((m, n), "float32"), R.Tensor((m, n), "float32")]
        )
