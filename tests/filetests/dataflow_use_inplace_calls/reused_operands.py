# The result of an elementwise operator overwrites an operand of its size and type that nothing reads later.
# test opt --passes=DataflowUseInplaceCalls

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # A chain: each result but the first overwrites the previous one.
    @R.function
    def chain(x: R.Tensor(("n", 4), "float32"), y: R.Tensor((1, 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        with R.dataflow():
            z = R.add(x, y)
            a = R.add(z, y)
            q = R.multiply(a, y)
            s = R.nn.silu(q)
            gv = R.subtract(s, x)
            R.output(gv)
        return gv

    # The second operand dies, and the first is a parameter.
    @R.function
    def second(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        with R.dataflow():
            e = R.exp(x)
            gv = R.divide(x, e)
            R.output(gv)
        return gv

    # No reuse if the operand is read later, is an output, or has another size or data type.
    @R.function
    def kept(x: R.Tensor(("n", 4), "float32"), r: R.Tensor((1, 4), "float32")) -> R.Tuple(R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "float32"), R.Tensor(("n", 4), "bool"), R.Tensor(("n", 4), "float32")):
        with R.dataflow():
            later = R.tanh(x)
            a = R.sin(later)
            b = R.add(a, later)
            out = R.tanh(b)
            c = R.sin(out)
            small = R.tanh(r)
            wide = R.add(small, c)
            other = R.tanh(wide)
            truth = R.less(other, x)
            R.output(out, c, truth, wide)
        return (out, c, truth, wide)

    # No reuse if the operand has an alias, is a view, or is in a tuple.
    @R.function
    def shared(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n", 1), "float32"), R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        with R.dataflow():
            a = R.tanh(x)
            name = a
            b = R.sin(a)
            c = R.tanh(b)
            view = R.reshape(c, R.shape([n, 1]))
            d = R.sin(c)
            e = R.tanh(d)
            pair = (e, x)
            f = R.sin(e)
            R.output(name, view, pair, d, f)
        return (name, view, d, f, pair[0])

    # A call that reads an operand twice, and operators that move elements to other positions.
    @R.function
    def twice(x: R.Tensor((4, 4), "float32")) -> R.Tensor((4, 4), "float32"):
        with R.dataflow():
            a = R.exp(x)
            b = R.multiply(a, a)
            c = R.permute_dims(b)
            d = R.nn.softmax(c)
            e = R.where(R.less(d, x), d, x)
            gv = R.cumsum(e, axis=0)
            R.output(gv)
        return gv

    # Calls of loop functions.
    @T.prim_func(private=True)
    def scale(a: T.handle, b: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            with T.block("scale"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func(private=True)
    def repeated(a: T.handle, b: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i, k in T.grid(m, 2):
            with T.block("repeated"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func(private=True)
    def reverse(a: T.handle, b: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        B = T.match_buffer(b, (m,), "float32")
        for i in range(m):
            with T.block("reverse"):
                vi = T.axis.spatial(m, i)
                B[vi] = A[m - 1 - vi]

    @R.function
    def of_loops(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            a = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((n,), "float32"))
            b = R.call_tir(cls.scale, (a,), out_sinfo=R.Tensor((n,), "float32"))
            c = R.call_tir(cls.repeated, (b,), out_sinfo=R.Tensor((n,), "float32"))
            d = R.call_tir(cls.reverse, (c,), out_sinfo=R.Tensor((n,), "float32"))
            gv = R.call_tir(cls.scale, (d,), out_sinfo=R.Tensor((n,), "float32"))
            R.output(gv)
        return gv

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def chain(x: R.Tensor(("n", 4), dtype="float32"), y: R.Tensor((1, 4), dtype="float32")) -> R.Tensor(("n", 4), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             z: R.Tensor((n, 4), dtype="float32") = R.add(x, y)
#             a: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.add_inplace, (z, y), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             q: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.multiply_inplace, (a, y), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             s: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.silu_inplace, (q,), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             gv: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.subtract_inplace, (s, x), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             R.output(gv)
#         return gv
#
#     @R.function
#     def second(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             e: R.Tensor((n,), dtype="float32") = R.exp(x)
#             gv: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.divide_inplace, (x, e), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[1])
#             R.output(gv)
#         return gv
#
#     @R.function
#     def kept(x: R.Tensor(("n", 4), dtype="float32"), r: R.Tensor((1, 4), dtype="float32")) -> R.Tuple(R.Tensor(("n", 4), dtype="float32"), R.Tensor(("n", 4), dtype="float32"), R.Tensor(("n", 4), dtype="bool"), R.Tensor(("n", 4), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             later: R.Tensor((n, 4), dtype="float32") = R.tanh(x)
#             a: R.Tensor((n, 4), dtype="float32") = R.sin(later)
#             b: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.add_inplace1, (a, later), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             out: R.Tensor((n, 4), dtype="float32") = R.call_tir_inplace(cls.tanh_inplace, (b,), out_sinfo=R.Tensor((n, 4), dtype="float32"), inplace_indices=[0])
#             c: R.Tensor((n, 4), dtype="float32") = R.sin(out)
#             small: R.Tensor((1, 4), dtype="float32") = R.tanh(r)
#             wide: R.Tensor((n, 4), dtype="float32") = R.add(small, c)
#             other: R.Tensor((n, 4), dtype="float32") = R.tanh(wide)
#             truth: R.Tensor((n, 4), dtype="bool") = R.less(other, x)
#             R.output(out, c, wide, truth)
#         return (out, c, truth, wide)
#
#     @R.function
#     def shared(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n", 1), dtype="float32"), R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.tanh(x)
#             name: R.Tensor((n,), dtype="float32") = a
#             b: R.Tensor((n,), dtype="float32") = R.sin(a)
#             c: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.tanh_inplace1, (b,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#             view: R.Tensor((n, 1), dtype="float32") = R.reshape(c, R.shape([n, 1]))
#             d: R.Tensor((n,), dtype="float32") = R.sin(c)
#             e: R.Tensor((n,), dtype="float32") = R.tanh(d)
#             pair: R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) = (e, x)
#             f: R.Tensor((n,), dtype="float32") = R.sin(e)
#             R.output(name, view, d, pair, f)
#         gv: R.Tensor((n,), dtype="float32") = pair[0]
#         return (name, view, d, f, gv)
#
#     @R.function
#     def twice(x: R.Tensor((4, 4), dtype="float32")) -> R.Tensor((4, 4), dtype="float32"):
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((4, 4), dtype="float32") = R.exp(x)
#             b: R.Tensor((4, 4), dtype="float32") = R.multiply(a, a)
#             c: R.Tensor((4, 4), dtype="float32") = R.permute_dims(b)
#             d: R.Tensor((4, 4), dtype="float32") = R.nn.softmax(c)
#             lv: R.Tensor((4, 4), dtype="bool") = R.less(d, x)
#             e: R.Tensor((4, 4), dtype="float32") = R.call_tir_inplace(cls.where_inplace, (lv, d, x), out_sinfo=R.Tensor((4, 4), dtype="float32"), inplace_indices=[1])
#             gv: R.Tensor((4, 4), dtype="float32") = R.cumsum(e, axis=0)
#             R.output(gv)
#         return gv
#
#     @T.prim_func(private=True)
#     def scale(a: T.handle, b: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         B = T.match_buffer(b, (m,), "float32")
#         for i in range(m):
#             with T.block("scale"):
#                 vi = T.axis.spatial(m, i)
#                 B[vi] = A[vi] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def repeated(a: T.handle, b: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         B = T.match_buffer(b, (m,), "float32")
#         for i, k in T.grid(m, 2):
#             with T.block("repeated"):
#                 vi = T.axis.spatial(m, i)
#                 B[vi] = A[vi] * T.float32(2.0)
#
#     @T.prim_func(private=True)
#     def reverse(a: T.handle, b: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         B = T.match_buffer(b, (m,), "float32")
#         for i in range(m):
#             with T.block("reverse"):
#                 vi = T.axis.spatial(m, i)
#                 B[vi] = A[m - 1 - vi]
#
#     @R.function
#     def of_loops(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         with R.dataflow():
#             a: R.Tensor((n,), dtype="float32") = R.call_tir(cls.scale, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             b: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.scale_inplace, (a,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#             c: R.Tensor((n,), dtype="float32") = R.call_tir(cls.repeated, (b,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             d: R.Tensor((n,), dtype="float32") = R.call_tir(cls.reverse, (c,), out_sinfo=R.Tensor((n,), dtype="float32"))
#             gv: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.scale_inplace, (d,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#             R.output(gv)
#         return gv
#
#     @T.prim_func(private=True)
#     def add_inplace(var_A: T.handle, B: T.Buffer((1, 4), "float32")):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[0, v_ax1])
#                 T.writes(A[v_ax0, v_ax1])
#                 A[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[0, v_ax1]
#
#     @T.prim_func(private=True)
#     def multiply_inplace(var_A: T.handle, B: T.Buffer((1, 4), "float32")):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_multiply"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[0, v_ax1])
#                 T.writes(A[v_ax0, v_ax1])
#                 A[v_ax0, v_ax1] = A[v_ax0, v_ax1] * B[0, v_ax1]
#
#     @T.prim_func(private=True)
#     def silu_inplace(var_A: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(A[v_i0, v_i1])
#                 A[v_i0, v_i1] = A[v_i0, v_i1] * T.sigmoid(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def subtract_inplace(var_A: T.handle, var_B: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_subtract"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(A[v_ax0, v_ax1])
#                 A[v_ax0, v_ax1] = A[v_ax0, v_ax1] - B[v_ax0, v_ax1]
#
#     @T.prim_func(private=True)
#     def divide_inplace(var_A: T.handle, var_B: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         B = T.match_buffer(var_B, (n,), "float32")
#         for ax0 in range(n):
#             with T.block("T_divide"):
#                 v_ax0 = T.axis.spatial(n, ax0)
#                 T.reads(A[v_ax0], B[v_ax0])
#                 T.writes(B[v_ax0])
#                 B[v_ax0] = A[v_ax0] / B[v_ax0]
#
#     @T.prim_func(private=True)
#     def add_inplace1(var_A: T.handle, var_B: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         B = T.match_buffer(var_B, (n, 4), "float32")
#         for ax0, ax1 in T.grid(n, 4):
#             with T.block("T_add"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1])
#                 T.writes(A[v_ax0, v_ax1])
#                 A[v_ax0, v_ax1] = A[v_ax0, v_ax1] + B[v_ax0, v_ax1]
#
#     @T.prim_func(private=True)
#     def tanh_inplace(var_A: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n, 4), "float32")
#         for i0, i1 in T.grid(n, 4):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(A[v_i0, v_i1])
#                 A[v_i0, v_i1] = T.tanh(A[v_i0, v_i1])
#
#     @T.prim_func(private=True)
#     def tanh_inplace1(var_A: T.handle):
#         T.func_attr({"tir.noalias": True})
#         n = T.int64()
#         A = T.match_buffer(var_A, (n,), "float32")
#         for i0 in range(n):
#             with T.block("compute"):
#                 v_i0 = T.axis.spatial(n, i0)
#                 T.reads(A[v_i0])
#                 T.writes(A[v_i0])
#                 A[v_i0] = T.tanh(A[v_i0])
#
#     @T.prim_func(private=True)
#     def where_inplace(A: T.Buffer((4, 4), "bool"), B: T.Buffer((4, 4), "float32"), C: T.Buffer((4, 4), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for ax0, ax1 in T.grid(4, 4):
#             with T.block("T_where"):
#                 v_ax0, v_ax1 = T.axis.remap("SS", [ax0, ax1])
#                 T.reads(A[v_ax0, v_ax1], B[v_ax0, v_ax1], C[v_ax0, v_ax1])
#                 T.writes(B[v_ax0, v_ax1])
#                 B[v_ax0, v_ax1] = T.Select(A[v_ax0, v_ax1], B[v_ax0, v_ax1], C[v_ax0, v_ax1])
#
#     @T.prim_func(private=True)
#     def scale_inplace(a: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         for i in range(m):
#             with T.block("scale"):
#                 vi = T.axis.spatial(m, i)
#                 A[vi] = A[vi] * T.float32(2.0)
