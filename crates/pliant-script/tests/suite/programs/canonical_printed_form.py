from pliant.script import ir as I, relax as R, tir as T

metadata = {
    "relax.expr.Constant": [
        I.tensor((2,), "int32", "AQAAAAIAAAA="),
    ]
}

@I.ir_module
class Module:
    @T.prim_func(private=True)
    def f(var_A: T.handle, var_B: T.handle, m: T.int64):
        n = T.int64()
        A = T.match_buffer(var_A, (n, 4), "float32")
        B = T.match_buffer(var_B, (n, 4), "float32")
        for i, j in T.grid(n, 4):
            with T.block("B"):
                v_i, v_j = T.axis.remap("SS", [i, j])
                T.reads(A[v_i, v_j])
                T.writes(B[v_i, v_j])
                B[v_i, v_j] = T.max(A[v_i, v_j], T.float32(0.0)) * T.Cast("float32", m)

    @R.function
    def main(x: R.Tensor(("n", 4), dtype="float32"), c: R.Tensor((), dtype="bool"), s: R.Shape(["m", "k * 2"])) -> R.Tensor(("n", 4), dtype="float32"):
        n = T.int64()
        m = T.int64()
        k = T.int64()
        R.func_attr({"global_symbol": "main", "num": [1, 2.5, None]})
        cls = Module
        with R.dataflow():
            lv: R.Tensor((n, 4), dtype="float32") = R.call_tir(cls.f, (x,), out_sinfo=R.Tensor((n, 4), dtype="float32"), tir_vars=R.shape([m]))
            lv1: R.Tensor((n, 4), dtype="float32") = R.add(lv, R.const(1.0, "float32"))
            lv2: R.Tensor((n * 4,), dtype="float32") = R.reshape(lv1, R.shape([n * 4]))
            gv: R.Tensor((n, 4), dtype="float32") = R.reshape(lv2, R.shape([n, 4]))
            R.output(gv)
        if c:
            y: R.Tensor((n, 4), dtype="float32") = R.exp(gv)
            z: R.Tensor((n, 4), dtype="float32") = y
        else:
            z: R.Tensor((n, 4), dtype="float32") = gv
        t: R.Tuple(R.Tensor((2,), dtype="int32"), R.Prim(value=n)) = (metadata["relax.expr.Constant"][0], R.prim_value(n))
        u: R.Tensor((2,), dtype="int32") = t[0]
        return z
