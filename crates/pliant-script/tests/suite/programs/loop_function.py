@I.ir_module
class Module:
    @T.prim_func
    def f(A: T.Buffer((16, 4), "float32"), x: T.int32, s: T.float32):
        assert x < T.int32(4), "x is small"
        for i in T.parallel(16):
            y: T.int64 = i * 2
            B = T.alloc_buffer((4,), "float32", scope="local")
            for j in T.vectorized(4):
                B[j] = A[i, j] * s
            for j in T.unroll(2, 4):
                if j < 3 and not y == 4:
                    A[i, j] = T.exp(B[j]) + T.Cast("float32", y)
                else:
                    A[i, j] = T.if_then_else(j < 3, B[j], T.float32(1.5))
            while A[i, 0] < T.float32(10.0):
                A[i, 0] = A[i, 0] + T.Select(x < T.int32(0), T.float32(1.0), T.float32("inf"))
            T.evaluate(T.call_extern("int32", "f", T.address_of(A[i, 0]), "text", y))
        for i in T.serial(4, annotations={"pragma": "x"}):
            with T.block("B"):
                v_i = T.axis.spatial(4, i)
                v_r = T.axis.reduce((2, 4), i + 2)
                T.where(v_i % 2 == 0)
                C = T.alloc_buffer((4,), "int8")
                D = T.decl_buffer((4,), "bool")
                C[v_i] = T.int8(-3)
                D[v_r] = T.bool(True)
                A[v_i, T.Ramp(0, 1, 4)] = T.Broadcast(T.float32(1.0), 4)
                with T.LetStmt(v_i + 1) as z:
                    A[z, T.truncdiv(z, 2)] = T.max(A[z, z // 2], T.float32(-0.5))
                A[v_i, 0] = T.reinterpret("float32", T.int32(1))
