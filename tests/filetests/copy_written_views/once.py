# test opt --passes=CopyWrittenViews,RemovePurityChecking,CallTIRRewrite

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # Later passes see that the view is copied already.
    @T.prim_func(private=True)
    def increase(a: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        for i in range(m):
            with T.block("increase"):
                vi = T.axis.spatial(m, i)
                A[vi] = A[vi] + T.float32(1)

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n", 1), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        a = R.exp(x)
        v = R.reshape(a, R.shape([n, 1]))
        b = R.call_tir_inplace(cls.increase, (a,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        return (v, b)

# expect
