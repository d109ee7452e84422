# Calls of a loop function with a wrong number of tensors, and with a data type or a rank that it does not accept.
# test verify
# fails: PL0218 has 2 parameters, but call_tir passes 2 inputs, 1 outputs and 0 sizes
# fails: PL0218 has dtype float32
# fails: PL0218 has 1 dims

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def copy(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        for i in range(n):
            with T.block("copy"):
                v = T.axis.spatial(n, i)
                B[v] = A[v]

    @R.function
    def count(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        return R.call_tir(cls.copy, (x, x), out_sinfo=R.Tensor((n,), "float32"))

    @R.function
    def dtype(x: R.Tensor(("n",), "int32")) -> R.Object:
        n = T.int64()
        cls = Module
        return R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n,), "float32"))

    @R.function
    def rank(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        return R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n, 1), "float32"))
