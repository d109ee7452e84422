# Calls of library kernels that do not match the declaration of the kernel.
# test verify
# fails: kernel pool has no operand or attribute 'mode'
# fails: operand 'x' of kernel pool is float64, expected float32
# fails: operand 'x' of kernel pool has 4 dims, expected the dims (batch, channels, in_depth, in_height, in_width)
# fails: attribute 'kind' of kernel pool is missing
# fails: kernel pool: attribute 'kernel_shape' must be a list of 3 integers
# fails: operand 'x' of kernel transpose has 2 dims, but the argument 'axes' names 3 dims for it: [0, 2, 1]
# fails: the axes of operand 'x' must contain each of its dims exactly once, but are [0, 0]
# fails: kernel transpose writes out, but out_sinfo has 2 types
# fails: operand 'x' of kernel transpose has an unknown number of dims; declare its shape with R.match_cast
# fails: operand 'x' of kernel transpose has an unknown data type
# fails: operand 'out' of kernel transpose has unknown dims
# fails: operand 'x' of kernel transpose has 9 dims, but kernels support at most 8
# fails: operand 'out' of kernel softmax has columns = 3, but operand 'x' has columns = 2
# fails: operand 'q' of kernel attention has the axes [0, 1, 3, 2], but the kernel reads contiguous rows, so axis 3 must be last

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

    @R.function
    def unknown_rank(x: R.Tensor(dtype="float32")) -> R.Object:
        return R.call_kernel("transpose", x=x, out_sinfo=R.Tensor((2, 2), "float32"))

    @R.function
    def unknown_dtype(x: R.Tensor((2, 2))) -> R.Object:
        return R.call_kernel("transpose", x=x, out_sinfo=R.Tensor((2, 2), "float32"))

    @R.function
    def unknown_result(x: R.Tensor((2, 2), "float32")) -> R.Object:
        return R.call_kernel("transpose", x=x, out_sinfo=R.Tensor(ndim=2, dtype="float32"))

    @R.function
    def many_dims(x: R.Tensor((1, 1, 1, 1, 1, 1, 1, 1, 1), "float32")) -> R.Object:
        return R.call_kernel("transpose", x=x, out_sinfo=R.Tensor((1, 1, 1, 1, 1, 1, 1, 1, 1), "float32"))

    @R.function
    def other_size(x: R.Tensor(("n", 2), "float32")) -> R.Object:
        n = T.int64()
        return R.call_kernel("softmax", x=x, out_sinfo=R.Tensor((n, 3), "float32"))

    @R.function
    def rows_across_a_dim(q: R.Tensor((1, 1, 4, 2), "float32"), k: R.Tensor((1, 1, 2, 4), "float32")) -> R.Object:
        return R.call_kernel(
            "attention",
            q=q,
            k=k,
            v=k,
            scale=1.0,
            axes={"q": [0, 1, 3, 2]},
            out_sinfo=R.Tensor((1, 1, 2, 4), "float32"),
        )
