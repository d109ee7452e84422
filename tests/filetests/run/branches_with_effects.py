# Branches with side effects, with and without an else, and purity declared by `force_pure`.
# test run

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(a: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = A[i] * T.float32(2)

    # A branch with a side effect needs no else, whether its call is bound to a name or not.
    @R.function(pure=False)
    def bound(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y = R.add(x, x)
        if n > 2:
            w = R.call_tir_inplace(cls.double, (y,), [0], R.Tensor((n,), "float32"))
        z = R.add(y, x)
        return z

    @R.function(pure=False)
    def both(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        y = R.add(x, x)
        if n > 7:
            _ = R.assert_op(R.const(True, "bool"))
        else:
            w = R.call_tir_inplace(cls.double, (y,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        return y

    # The declared purity of a function counts: pure functions may call one with force_pure.
    @R.function
    def checked(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        R.func_attr({"relax.force_pure": True})
        _ = R.assert_op(R.const(True, "bool"))
        return x

    @R.function
    def calls_checked(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        cls = Module
        with R.dataflow():
            lv = cls.checked(x)
            gv = R.add(lv, lv)
            R.output(gv)
        return gv

# expect
# bound at n=0: Tensor([0], float32) []
# bound at n=1: Tensor([1], float32) [-1.6875]
# bound at n=2: Tensor([2], float32) [-2.9062, 0.9844]
# bound at n=3: Tensor([3], float32) [-7.0312, -9.8438, 4.9219]
# bound at n=7: Tensor([7], float32) [8.7500, 4.4531, -3.3594, 0.0781, -8.3594, -9.6875, ... sum -12.812]
# bound at n=8: Tensor([8], float32) [-5.1562, 4.2969, -6.0156, 9.8438, -2.5000, -5.6250, ... sum 4.141]
# bound at n=31: Tensor([31], float32) [-8.9844, 7.6562, 5.1562, 2.8125, 9.3750, 4.8438, ... sum 8.516]
# bound at n=64: Tensor([64], float32) [4.8438, 1.1719, -7.8125, 2.5000, 1.1719, 5.0781, ... sum 20.156]
# both at n=0: Tensor([0], float32) []
# both at n=1: Tensor([1], float32) [-2.2500]
# both at n=2: Tensor([2], float32) [-3.8750, 1.3125]
# both at n=3: Tensor([3], float32) [-5.6250, -7.8750, 3.9375]
# both at n=7: Tensor([7], float32) [7.0000, 3.5625, -2.6875, 0.0625, -6.6875, -7.7500, ... sum -10.250]
# both at n=8: Tensor([8], float32) [-2.0625, 1.7188, -2.4062, 3.9375, -1.0000, -2.2500, ... sum 1.656]
# both at n=31: Tensor([31], float32) [-3.5938, 3.0625, 2.0625, 1.1250, 3.7500, 1.9375, ... sum 3.406]
# both at n=64: Tensor([64], float32) [1.9375, 0.4688, -3.1250, 1.0000, 0.4688, 2.0312, ... sum 8.062]
# checked at n=0: Tensor([0], float32) []
# checked at n=1: Tensor([1], float32) [-0.5625]
# checked at n=2: Tensor([2], float32) [-0.9688, 0.3281]
# checked at n=3: Tensor([3], float32) [-1.4062, -1.9688, 0.9844]
# checked at n=7: Tensor([7], float32) [1.7500, 0.8906, -0.6719, 0.0156, -1.6719, -1.9375, ... sum -2.562]
# checked at n=8: Tensor([8], float32) [-1.0312, 0.8594, -1.2031, 1.9688, -0.5000, -1.1250, ... sum 0.828]
# checked at n=31: Tensor([31], float32) [-1.7969, 1.5312, 1.0312, 0.5625, 1.8750, 0.9688, ... sum 1.703]
# checked at n=64: Tensor([64], float32) [0.9688, 0.2344, -1.5625, 0.5000, 0.2344, 1.0156, ... sum 4.031]
# calls_checked at n=0 n=3: Tensor([0], float32) []
# calls_checked at n=1 n=7: Tensor([1], float32) [-1.1250]
# calls_checked at n=2 n=8: Tensor([2], float32) [-1.9375, 0.6562]
# calls_checked at n=3 n=31: Tensor([3], float32) [-2.8125, -3.9375, 1.9688]
# calls_checked at n=7 n=64: Tensor([7], float32) [3.5000, 1.7812, -1.3438, 0.0312, -3.3438, -3.8750, ... sum -5.125]
# calls_checked at n=8 n=0: Tensor([8], float32) [-2.0625, 1.7188, -2.4062, 3.9375, -1.0000, -2.2500, ... sum 1.656]
# calls_checked at n=31 n=1: Tensor([31], float32) [-3.5938, 3.0625, 2.0625, 1.1250, 3.7500, 1.9375, ... sum 3.406]
# calls_checked at n=64 n=2: Tensor([64], float32) [1.9375, 0.4688, -3.1250, 1.0000, 0.4688, 2.0312, ... sum 8.062]
