# Every way to call a packed function.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def plain(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.call_packed("test.double", x, sinfo_args=R.Tensor((n,), "float32"))

    @R.function
    def pure(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            lv = R.call_pure_packed("test.double", x, sinfo_args=R.Tensor((n,), "float32"))
            gv = R.add(lv, x)
            R.output(gv)
        return gv

    @R.function
    def destination(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        return R.call_dps_packed("test.double_into", (x,), out_sinfo=R.Tensor((n,), "float32"))

    @R.function
    def inplace(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.add(x, x)
        z = R.call_inplace_packed("test.double_inplace", y, inplace_indices=0, sinfo_args=R.Tensor((n,), "float32"))
        return z

    # A result of unknown size: a match_cast names the size, and the size of another value is computed from it.
    @R.function(pure=False)
    def unknown_size(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(ndim=1, dtype="float32"), R.Shape(ndim=1)):
        y = R.call_packed("test.half", x, sinfo_args=R.Tensor(ndim=1, dtype="float32"))
        m = T.int64()
        z = R.match_cast(y, R.Tensor((m,), "float32"))
        w = R.concat([z, R.ones((m + 1,), "float32")])
        return (w, R.shape([m]))

    # A result of unknown rank and data type.
    @R.function(pure=False)
    def unknown_type(x: R.Tensor(("n",), "float32")) -> R.Object:
        y = R.call_packed("test.half", x, sinfo_args=R.Tensor())
        return R.add(y, y)

    # An output is allocated with a shape that a packed function computes.
    @R.function(pure=False)
    def computed_shape(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        s = R.call_packed("test.half_shape", x, sinfo_args=R.Shape(ndim=1))
        m = T.int64()
        t = R.match_cast(s, R.Shape([m]))
        return R.zeros(R.shape([m]), "float32")

    # Opaque objects: a counter, and a list of tensors that grows in a loop.
    @R.function(pure=False)
    def states(x: R.Tensor(("n",), "float32")) -> R.Tensor((), "int64"):
        c = R.call_packed("test.counter", R.prim_value(5), sinfo_args=R.Object)
        a = R.call_packed("test.next", c, sinfo_args=R.Tensor((), "int64"))
        b = R.call_packed("test.next", c, sinfo_args=R.Tensor((), "int64"))
        return R.add(R.multiply(a, R.const(10, "int64")), b)

    @R.function(pure=False)
    def array(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        a = R.call_packed("test.array", sinfo_args=R.Object)
        for i in R.range(3):
            y = R.add(x, R.full((), R.prim_value(i), "float32"))
            R.call_packed("test.push", a, y, sinfo_args=R.Tuple())
        return R.call_packed("test.stack", a, sinfo_args=R.Tensor(ndim=1, dtype="float32"))

    # Strings, data types, shapes, numbers and tuples are values like tensors.
    @R.function(pure=False)
    def values(x: R.Tensor(("n",), "float32"), k: R.Prim("int64")) -> R.Object:
        n = T.int64()
        return R.call_packed("test.describe", R.str("a"), R.dtype("int8"), R.shape([n, 2]), k, R.prim_value(1.5), (x, R.str("b")), sinfo_args=R.Object)

    # Side effects happen in program order, branches included.
    @R.function(pure=False)
    def order(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1, dtype="float32"):
        n = T.int64()
        a = R.call_packed("test.array", sinfo_args=R.Object)
        R.call_packed("test.push", a, x, sinfo_args=R.Tuple())
        if n > 2:
            R.call_packed("test.push", a, R.ones((1,), "float32"), sinfo_args=R.Tuple())
        R.call_packed("test.push", a, x, sinfo_args=R.Tuple())
        return R.call_packed("test.stack", a, sinfo_args=R.Tensor(ndim=1, dtype="float32"))

# expect
# plain at n=0: Tensor([0], float32) []
# plain at n=1: Tensor([1], float32) [-1.1250]
# plain at n=2: Tensor([2], float32) [-1.9375, 0.6562]
# plain at n=3: Tensor([3], float32) [-2.8125, -3.9375, 1.9688]
# plain at n=7: Tensor([7], float32) [3.5000, 1.7812, -1.3438, 0.0312, -3.3438, -3.8750, ... sum -5.125]
# plain at n=8: Tensor([8], float32) [-2.0625, 1.7188, -2.4062, 3.9375, -1.0000, -2.2500, ... sum 1.656]
# plain at n=31: Tensor([31], float32) [-3.5938, 3.0625, 2.0625, 1.1250, 3.7500, 1.9375, ... sum 3.406]
# plain at n=64: Tensor([64], float32) [1.9375, 0.4688, -3.1250, 1.0000, 0.4688, 2.0312, ... sum 8.062]
# pure at n=0: Tensor([0], float32) []
# pure at n=1: Tensor([1], float32) [-1.6875]
# pure at n=2: Tensor([2], float32) [-2.9062, 0.9844]
# pure at n=3: Tensor([3], float32) [-4.2188, -5.9062, 2.9531]
# pure at n=7: Tensor([7], float32) [5.2500, 2.6719, -2.0156, 0.0469, -5.0156, -5.8125, ... sum -7.688]
# pure at n=8: Tensor([8], float32) [-3.0938, 2.5781, -3.6094, 5.9062, -1.5000, -3.3750, ... sum 2.484]
# pure at n=31: Tensor([31], float32) [-5.3906, 4.5938, 3.0938, 1.6875, 5.6250, 2.9062, ... sum 5.109]
# pure at n=64: Tensor([64], float32) [2.9062, 0.7031, -4.6875, 1.5000, 0.7031, 3.0469, ... sum 12.094]
# destination at n=0: Tensor([0], float32) []
# destination at n=1: Tensor([1], float32) [-1.1250]
# destination at n=2: Tensor([2], float32) [-1.9375, 0.6562]
# destination at n=3: Tensor([3], float32) [-2.8125, -3.9375, 1.9688]
# destination at n=7: Tensor([7], float32) [3.5000, 1.7812, -1.3438, 0.0312, -3.3438, -3.8750, ... sum -5.125]
# destination at n=8: Tensor([8], float32) [-2.0625, 1.7188, -2.4062, 3.9375, -1.0000, -2.2500, ... sum 1.656]
# destination at n=31: Tensor([31], float32) [-3.5938, 3.0625, 2.0625, 1.1250, 3.7500, 1.9375, ... sum 3.406]
# destination at n=64: Tensor([64], float32) [1.9375, 0.4688, -3.1250, 1.0000, 0.4688, 2.0312, ... sum 8.062]
# inplace at n=0: Tensor([0], float32) []
# inplace at n=1: Tensor([1], float32) [-2.2500]
# inplace at n=2: Tensor([2], float32) [-3.8750, 1.3125]
# inplace at n=3: Tensor([3], float32) [-5.6250, -7.8750, 3.9375]
# inplace at n=7: Tensor([7], float32) [7.0000, 3.5625, -2.6875, 0.0625, -6.6875, -7.7500, ... sum -10.250]
# inplace at n=8: Tensor([8], float32) [-4.1250, 3.4375, -4.8125, 7.8750, -2.0000, -4.5000, ... sum 3.312]
# inplace at n=31: Tensor([31], float32) [-7.1875, 6.1250, 4.1250, 2.2500, 7.5000, 3.8750, ... sum 6.812]
# inplace at n=64: Tensor([64], float32) [3.8750, 0.9375, -6.2500, 2.0000, 0.9375, 4.0625, ... sum 16.125]
# unknown_size at n=0 m=3: (Tensor([1], float32) [1.0000], Shape[0])
# unknown_size at n=1 m=7: (Tensor([1], float32) [1.0000], Shape[0])
# unknown_size at n=2 m=8: (Tensor([3], float32) [-0.9688, 1.0000, 1.0000], Shape[1])
# unknown_size at n=3 m=31: (Tensor([3], float32) [-1.4062, 1.0000, 1.0000], Shape[1])
# unknown_size at n=7 m=64: (Tensor([7], float32) [1.7500, 0.8906, -0.6719, 1.0000, 1.0000, 1.0000, ... sum 5.969], Shape[3])
# unknown_size at n=8 m=0: (Tensor([9], float32) [-1.0312, 0.8594, -1.2031, 1.9688, 1.0000, 1.0000, ... sum 5.594], Shape[4])
# unknown_size at n=31 m=1: (Tensor([31], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 20.172], Shape[15])
# unknown_size at n=64 m=2: (Tensor([65], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 41.125], Shape[32])
# unknown_type at n=0: Tensor([0], float32) []
# unknown_type at n=1: Tensor([0], float32) []
# unknown_type at n=2: Tensor([1], float32) [-1.9375]
# unknown_type at n=3: Tensor([1], float32) [-2.8125]
# unknown_type at n=7: Tensor([3], float32) [3.5000, 1.7812, -1.3438]
# unknown_type at n=8: Tensor([4], float32) [-2.0625, 1.7188, -2.4062, 3.9375]
# unknown_type at n=31: Tensor([15], float32) [-3.5938, 3.0625, 2.0625, 1.1250, 3.7500, 1.9375, ... sum 8.344]
# unknown_type at n=64: Tensor([32], float32) [1.9375, 0.4688, -3.1250, 1.0000, 0.4688, 2.0312, ... sum 16.250]
# computed_shape at n=0 m=3: Tensor([0], float32) []
# computed_shape at n=1 m=7: Tensor([0], float32) []
# computed_shape at n=2 m=8: Tensor([1], float32) [0.0000]
# computed_shape at n=3 m=31: Tensor([1], float32) [0.0000]
# computed_shape at n=7 m=64: Tensor([3], float32) [0.0000, 0.0000, 0.0000]
# computed_shape at n=8 m=0: Tensor([4], float32) [0.0000, 0.0000, 0.0000, 0.0000]
# computed_shape at n=31 m=1: Tensor([15], float32) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000]
# computed_shape at n=64 m=2: Tensor([32], float32) [0.0000, 0.0000, 0.0000, 0.0000, 0.0000, 0.0000, ... sum 0.000]
# states at n=0: Tensor([], int64) [67.0000]
# states at n=1: Tensor([], int64) [67.0000]
# states at n=2: Tensor([], int64) [67.0000]
# states at n=3: Tensor([], int64) [67.0000]
# states at n=7: Tensor([], int64) [67.0000]
# states at n=8: Tensor([], int64) [67.0000]
# states at n=31: Tensor([], int64) [67.0000]
# states at n=64: Tensor([], int64) [67.0000]
# array at n=0 i=3 i=31: Tensor([0], float32) []
# array at n=1 i=7 i=64: Tensor([3], float32) [-0.5625, 0.4375, 1.4375]
# array at n=2 i=8 i=0: Tensor([6], float32) [-0.9688, 0.3281, 0.0312, 1.3281, 1.0312, 2.3281]
# array at n=3 i=31 i=1: Tensor([9], float32) [-1.4062, -1.9688, 0.9844, -0.4062, -0.9688, 1.9844, ... sum 1.828]
# array at n=7 i=64 i=2: Tensor([21], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum 13.312]
# array at n=8 i=0 i=3: Tensor([24], float32) [-1.0312, 0.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 26.484]
# array at n=31 i=1 i=7: Tensor([93], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 98.109]
# array at n=64 i=2 i=8: Tensor([192], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 204.094]
# values at n=0: "the text a, the type int8, the shape [0, 2], the integer 0, the float 1.5, (a tensor, the text b)"
# values at n=1: "the text a, the type int8, the shape [1, 2], the integer 1, the float 1.5, (a tensor, the text b)"
# values at n=2: "the text a, the type int8, the shape [2, 2], the integer 2, the float 1.5, (a tensor, the text b)"
# values at n=3: "the text a, the type int8, the shape [3, 2], the integer 3, the float 1.5, (a tensor, the text b)"
# values at n=7: "the text a, the type int8, the shape [7, 2], the integer 7, the float 1.5, (a tensor, the text b)"
# values at n=8: "the text a, the type int8, the shape [8, 2], the integer 8, the float 1.5, (a tensor, the text b)"
# values at n=31: "the text a, the type int8, the shape [31, 2], the integer 31, the float 1.5, (a tensor, the text b)"
# values at n=64: "the text a, the type int8, the shape [64, 2], the integer 64, the float 1.5, (a tensor, the text b)"
# order at n=0: Tensor([0], float32) []
# order at n=1: Tensor([2], float32) [-0.5625, -0.5625]
# order at n=2: Tensor([4], float32) [-0.9688, 0.3281, -0.9688, 0.3281]
# order at n=3: Tensor([7], float32) [-1.4062, -1.9688, 0.9844, 1.0000, -1.4062, -1.9688, ... sum -3.781]
# order at n=7: Tensor([15], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum -4.125]
# order at n=8: Tensor([17], float32) [-1.0312, 0.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 2.656]
# order at n=31: Tensor([63], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 4.406]
# order at n=64: Tensor([129], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 9.062]
