# Loop functions with scalars and several outputs, which call packed functions and linked symbols.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Loop functions with scalars, several outputs, calls of packed functions and of linked symbols.
    @T.prim_func(private=True)
    def fill(b: T.handle, k: T.int64):
        n = T.int64()
        B = T.match_buffer(b, (n,), "int64")
        for i in range(n):
            B[i] = i * k

    @T.prim_func(private=True)
    def both(a: T.handle, lo: T.handle, hi: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        L = T.match_buffer(lo, (n,), "float32")
        H = T.match_buffer(hi, (n + 1,), "float32")
        for i in range(n):
            L[i] = A[i] - T.float32(1)
            H[i] = A[i] + T.float32(1)
        H[n] = T.float32(7)

    @T.prim_func(private=True)
    def squares(b: T.handle):
        n = T.int64()
        B = T.match_buffer(b, (n,), "int64")
        for i in range(n):
            B[i] = T.call_packed("test.square", i)

    @R.function
    def sizes(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n + 2",), "int64"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.fill, (), out_sinfo=R.Tensor((n + 2,), "int64"), tir_vars=R.shape([n * 3]))

    @R.function
    def outputs(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n + 1",), "float32")):
        n = T.int64()
        cls = Module
        t = R.call_tir(cls.both, (x,), out_sinfo=[R.Tensor((n,), "float32"), R.Tensor((n + 1,), "float32")])
        return (t[0], t[1])

    @R.function
    def tuples(t: R.Tuple(R.Tensor(("n",), "float32"), R.Tuple(R.Tensor(("n",), "float32"), R.Shape(["m"])))) -> R.Tuple(R.Shape(["m", "n"]), R.Tensor(("n",), "float32")):
        n, m = T.int64(), T.int64()
        return (R.shape([m, n]), R.subtract(t[0], t[1][0]))

    @R.function
    def packed_in_loops(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "int64"):
        n = T.int64()
        cls = Module
        return R.call_tir(cls.squares, (), out_sinfo=R.Tensor((n,), "int64"))

# expect
# sizes at n=0: Tensor([2], int64) [0.0000, 0.0000]
# sizes at n=1: Tensor([3], int64) [0.0000, 3.0000, 6.0000]
# sizes at n=2: Tensor([4], int64) [0.0000, 6.0000, 12.0000, 18.0000]
# sizes at n=3: Tensor([5], int64) [0.0000, 9.0000, 18.0000, 27.0000, 36.0000]
# sizes at n=7: Tensor([9], int64) [0.0000, 21.0000, 42.0000, 63.0000, 84.0000, 105.0000, ... sum 756.000]
# sizes at n=8: Tensor([10], int64) [0.0000, 24.0000, 48.0000, 72.0000, 96.0000, 120.0000, ... sum 1080.000]
# sizes at n=31: Tensor([33], int64) [0.0000, 93.0000, 186.0000, 279.0000, 372.0000, 465.0000, ... sum 49104.000]
# sizes at n=64: Tensor([66], int64) [0.0000, 192.0000, 384.0000, 576.0000, 768.0000, 960.0000, ... sum 411840.000]
# outputs at n=0: (Tensor([0], float32) [], Tensor([1], float32) [7.0000])
# outputs at n=1: (Tensor([1], float32) [-1.5625], Tensor([2], float32) [0.4375, 7.0000])
# outputs at n=2: (Tensor([2], float32) [-1.9688, -0.6719], Tensor([3], float32) [0.0312, 1.3281, 7.0000])
# outputs at n=3: (Tensor([3], float32) [-2.4062, -2.9688, -0.0156], Tensor([4], float32) [-0.4062, -0.9688, 1.9844, 7.0000])
# outputs at n=7: (Tensor([7], float32) [0.7500, -0.1094, -1.6719, -0.9844, -2.6719, -2.9375, ... sum -9.562], Tensor([8], float32) [2.7500, 1.8906, 0.3281, 1.0156, -0.6719, -0.9375, ... sum 11.438])
# outputs at n=8: (Tensor([8], float32) [-2.0312, -0.1406, -2.2031, 0.9688, -1.5000, -2.1250, ... sum -7.172], Tensor([9], float32) [-0.0312, 1.8594, -0.2031, 2.9688, 0.5000, -0.1250, ... sum 15.828])
# outputs at n=31: (Tensor([31], float32) [-2.7969, 0.5312, 0.0312, -0.4375, 0.8750, -0.0312, ... sum -29.297], Tensor([32], float32) [-0.7969, 2.5312, 2.0312, 1.5625, 2.8750, 1.9688, ... sum 39.703])
# outputs at n=64: (Tensor([64], float32) [-0.0312, -0.7656, -2.5625, -0.5000, -0.7656, 0.0156, ... sum -59.969], Tensor([65], float32) [1.9688, 1.2344, -0.5625, 1.5000, 1.2344, 2.0156, ... sum 75.031])
# tuples at n=0 m=3: (Shape[3, 0], Tensor([0], float32) [])
# tuples at n=1 m=7: (Shape[7, 1], Tensor([1], float32) [-2.1875])
# tuples at n=2 m=8: (Shape[8, 2], Tensor([2], float32) [-1.7656, 0.4844])
# tuples at n=3 m=31: (Shape[31, 3], Tensor([3], float32) [-3.3438, -0.9844, -0.1875])
# tuples at n=7 m=64: (Shape[64, 7], Tensor([7], float32) [1.0625, 1.5000, 0.9375, -0.6562, -2.6719, -1.6562, ... sum -1.453])
# tuples at n=8 m=0: (Shape[0, 8], Tensor([8], float32) [0.7031, 2.6719, -1.9531, 2.7812, -1.5781, -1.0156, ... sum 2.734])
# tuples at n=31 m=1: (Shape[1, 31], Tensor([31], float32) [-2.3281, 1.5469, -0.5469, 0.9688, 2.5938, 1.2344, ... sum -2.422])
# tuples at n=64 m=2: (Shape[2, 64], Tensor([64], float32) [2.3906, 1.2812, -0.7812, 0.2812, 1.4688, 2.6562, ... sum 0.141])
# packed_in_loops at n=0: Tensor([0], int64) []
# packed_in_loops at n=1: Tensor([1], int64) [0.0000]
# packed_in_loops at n=2: Tensor([2], int64) [0.0000, 1.0000]
# packed_in_loops at n=3: Tensor([3], int64) [0.0000, 1.0000, 4.0000]
# packed_in_loops at n=7: Tensor([7], int64) [0.0000, 1.0000, 4.0000, 9.0000, 16.0000, 25.0000, ... sum 91.000]
# packed_in_loops at n=8: Tensor([8], int64) [0.0000, 1.0000, 4.0000, 9.0000, 16.0000, 25.0000, ... sum 140.000]
# packed_in_loops at n=31: Tensor([31], int64) [0.0000, 1.0000, 4.0000, 9.0000, 16.0000, 25.0000, ... sum 9455.000]
# packed_in_loops at n=64: Tensor([64], int64) [0.0000, 1.0000, 4.0000, 9.0000, 16.0000, 25.0000, ... sum 85344.000]
