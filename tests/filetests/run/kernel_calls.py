# Library kernels called from a graph function: transposed operands, results with permuted axes, several results.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def transpose(x: R.Tensor(("n", "m", 2), "float32")) -> R.Tensor((2, "m", "n"), "float32"):
        n, m = T.int64(), T.int64()
        with R.dataflow():
            y = R.call_kernel("transpose", x=x, axes={"x": [2, 1, 0]}, out_sinfo=R.Tensor((2, m, n), "float32"))
            R.output(y)
        return y

    @R.function
    def pool(x: R.Tensor(("n", "h", 3, 2), "float32")) -> R.Tensor(("n", "h", 3, 2), "float32"):
        n, h = T.int64(), T.int64()
        with R.dataflow():
            y = R.call_kernel(
                "pool",
                (x,),
                kind="max",
                kernel_shape=[1, 3, 1],
                padding=[0, 1, 0],
                axes={"x": [0, 3, -1, 1, 2], "out": [0, 3, -1, 1, 2]},
                out_sinfo=R.Tensor((n, h, 3, 2), "float32"),
            )
            R.output(y)
        return y

    @R.function
    def recurrent(x: R.Tensor(("s", "n", 1), "float32"), w: R.Tensor((16,), "float32")) -> R.Object:
        s, n = T.int64(), T.int64()
        with R.dataflow():
            y = R.call_kernel(
                "recurrent",
                x=x,
                w=R.concat([w, w, w, w]),
                r=R.concat([w, w, w, w]),
                bias=w,
                cell="rnn",
                out_sinfo=[R.Tensor((s, 1, n, 1), "float32"), R.Tensor((1, n, 1), "float32")],
            )
            R.output(y)
        return y

# expect
# transpose at n=0 m=3: Tensor([2, 3, 0], float32) []
# transpose at n=1 m=7: Tensor([2, 7, 1], float32) [-0.5625, -0.4375, 1.6719, -1.4688, -0.0938, 1.9688, ... sum 4.875]
# transpose at n=2 m=8: Tensor([2, 8, 2], float32) [-0.9688, -1.4062, 0.7969, -0.9688, -1.0781, -1.0938, ... sum -3.750]
# transpose at n=3 m=31: Tensor([2, 31, 3], float32) [-1.4062, -1.0781, -0.7500, 0.9844, -1.7969, 1.4375, ... sum 9.047]
# transpose at n=7 m=64: Tensor([2, 64, 7], float32) [1.7500, 0.6094, 0.2344, -0.7656, -1.6406, -0.9688, ... sum 34.266]
# transpose at n=8 m=0: Tensor([2, 0, 8], float32) []
# transpose at n=31 m=1: Tensor([2, 1, 31], float32) [-1.7969, 1.0312, 1.8750, 1.5938, 0.6250, 0.9531, ... sum 5.828]
# transpose at n=64 m=2: Tensor([2, 2, 64], float32) [0.9688, 0.2344, -1.3281, 1.2969, -0.2969, -0.7031, ... sum 4.859]
# pool at n=0 h=3: Tensor([0, 3, 3, 2], float32) []
# pool at n=1 h=7: Tensor([1, 7, 3, 2], float32) [-0.5625, 2.0000, -0.0938, 0.6562, 1.9688, -0.5938, ... sum 35.953]
# pool at n=2 h=8: Tensor([2, 8, 3, 2], float32) [-0.0625, 1.5469, 1.5469, -0.1562, 1.0938, 1.1875, ... sum 61.656]
# pool at n=3 h=31: Tensor([3, 31, 3, 2], float32) [1.5781, -1.2344, 0.9844, 1.9375, 1.3750, 1.1719, ... sum 580.312]
# pool at n=7 h=64: Tensor([7, 64, 3, 2], float32) [1.7500, 0.8906, -0.6094, 0.0156, 0.6719, 1.0000, ... sum 2740.453]
# pool at n=8 h=0: Tensor([8, 0, 3, 2], float32) []
# pool at n=31 h=1: Tensor([31, 1, 3, 2], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 12.297]
# pool at n=64 h=2: Tensor([64, 2, 3, 2], float32) [1.2188, 0.2344, -1.3281, 0.5000, 0.2344, 1.0156, ... sum 484.688]
# recurrent at s=0 n=3: (Tensor([0, 1, 3, 1], float32) [], Tensor([1, 3, 1], float32) [0.0000, 0.0000, 0.0000])
# recurrent at s=1 n=7: (Tensor([1, 1, 7, 1], float32) [0.7039, 0.9999, 0.8093, 0.9593, 1.0000, -0.6534, ... sum 3.085], Tensor([1, 7, 1], float32) [0.7039, 0.9999, 0.8093, 0.9593, 1.0000, -0.6534, ... sum 3.085])
# recurrent at s=2 n=8: (Tensor([2, 1, 8, 1], float32) [-0.0439, -0.9534, -0.9873, -0.8295, 0.1094, -0.9958, ... sum -8.294], Tensor([1, 8, 1], float32) [-0.9982, 0.9902, -0.9148, 0.7068, -0.9344, -0.9788, ... sum -2.728])
# recurrent at s=3 n=31: (Tensor([3, 1, 31, 1], float32) [0.1450, 0.3347, -0.6126, -0.7840, -0.0056, -0.6530, ... sum -24.506], Tensor([1, 31, 1], float32) [0.2685, 0.0697, 0.3713, -0.8161, -0.5408, -0.3397, ... sum -7.848])
# recurrent at s=7 n=64: (Tensor([7, 1, 64, 1], float32) [0.7566, 0.5912, 0.1174, 0.3496, -0.2369, -0.3247, ... sum 191.539], Tensor([1, 64, 1], float32) [0.0832, 0.8788, 0.7651, 0.7474, 0.7121, 0.6275, ... sum 25.733])
# recurrent at s=8 n=0: (Tensor([8, 1, 0, 1], float32) [], Tensor([1, 0, 1], float32) [])
# recurrent at s=31 n=1: (Tensor([31, 1, 1, 1], float32) [-0.3997, 0.8118, 0.9070, 0.8648, 0.9631, 0.9150, ... sum 16.370], Tensor([1, 1, 1], float32) [0.9052])
# recurrent at s=64 n=2: (Tensor([64, 1, 2, 1], float32) [-0.9734, -0.8741, 0.9328, -0.5945, -0.9827, -0.9145, ... sum -46.885], Tensor([1, 2, 1], float32) [-0.9990, 0.0647])
