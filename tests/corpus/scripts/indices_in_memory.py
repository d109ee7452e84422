from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def gather(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        m = T.int64()
        x = T.match_buffer(a, (n,), "float32")
        i = T.match_buffer(b, (m,), "int64")
        o = T.match_buffer(c, (m,), "float32")
        for k in T.parallel(m):
            if i[k] < 8:
                o[k] = T.exp(x[i[k]])
            else:
                o[k] = x[T.max(T.min(i[k], n - 1), T.int64(0))]

    @T.prim_func
    def scatter(a: T.handle, b: T.handle, c: T.handle):
        n = T.int64()
        x = T.match_buffer(a, (n,), "float32")
        i = T.match_buffer(b, (n,), "int32")
        o = T.match_buffer(c, (n,), "float32")
        s = T.decl_buffer((4,), "int64")
        s[0] = T.int64(0)
        for k in range(n):
            o[k] = T.float32(0)
        while s[0] < n:
            o[i[s[0]]] = o[i[s[0]]] + x[s[0]]
            s[0] = s[0] + T.int64(1)

    @R.function
    def main(x: R.Tensor(("n",), "float32"), i: R.Tensor(("m",), "int64"), j: R.Tensor(("n",), "int32")) -> R.Object:
        n, m = T.int64(), T.int64()
        cls = Module
        y = R.call_tir(cls.gather, (x, i), out_sinfo=R.Tensor((m,), "float32"))
        z = R.call_tir(cls.scatter, (x, j), out_sinfo=R.Tensor((n,), "float32"))
        w = R.take(z, i, axis=0)
        return (y, w)
