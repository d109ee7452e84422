# A view is copied if an in-place call overwrites its memory: directly, through a call, or if the memory is the caller's.
# test opt --passes=CopyWrittenViews

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def increase(a: T.handle):
        m = T.int64()
        A = T.match_buffer(a, (m,), "float32")
        for i in range(m):
            with T.block("increase"):
                vi = T.axis.spatial(m, i)
                A[vi] = A[vi] + T.float32(1)

    # A view of a parameter: the memory belongs to the caller.
    @R.function(pure=False)
    def of_parameter(x: R.Tensor(("n", 3), "float32")) -> R.Tuple(R.Tensor(("n", 3), "float32"), R.Tensor(("n * 3",), "float32")):
        n = T.int64()
        cls = Module
        y = R.reshape(x, R.shape([n * 3]))
        z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((n * 3,), "float32"))
        return (x, z)

    # The view is created before its base tensor is written.
    @R.function(pure=False)
    def before_the_write(x: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n", 1), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        a = R.exp(x)
        v = R.reshape(a, R.shape([n, 1]))
        b = R.call_tir_inplace(cls.increase, (a,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        return (v, b)

    # The view is written through a call of a module function.
    @R.function(private=True, pure=False)
    def helper(w: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        cls = Module
        r = R.call_tir_inplace(cls.increase, (w,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        return r

    @R.function(pure=False)
    def in_a_function(x: R.Tensor(("n", 1), "float32")) -> R.Tuple(R.Tensor(("n", 1), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        y = R.reshape(x, R.shape([n]))
        z = cls.helper(y)
        return (x, z)

    # No copies: nothing else reads the base of the written view, and nothing writes the other view.
    @R.function(pure=False)
    def alone(x: R.Tensor(("n", 1), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        n = T.int64()
        cls = Module
        a = R.exp(x)
        y = R.reshape(a, R.shape([n]))
        z = R.call_tir_inplace(cls.increase, (y,), inplace_indices=0, out_sinfo=R.Tensor((n,), "float32"))
        other = R.reshape(x, R.shape([n]))
        w = R.exp(other)
        return (w, z)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def increase(a: T.handle):
#         m = T.int64()
#         A = T.match_buffer(a, (m,), "float32")
#         for i in range(m):
#             with T.block("increase"):
#                 vi = T.axis.spatial(m, i)
#                 A[vi] = A[vi] + T.float32(1.0)
#
#     @R.function(pure=False)
#     def of_parameter(x: R.Tensor(("n", 3), dtype="float32")) -> R.Tuple(R.Tensor(("n", 3), dtype="float32"), R.Tensor(("n * 3",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         y_view: R.Tensor((n * 3,), dtype="float32") = R.reshape(x, R.shape([n * 3]))
#         y: R.Tensor((n * 3,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", y_view, sinfo_args=(R.Tensor((n * 3,), dtype="float32"),))
#         z: R.Tensor((n * 3,), dtype="float32") = R.call_tir_inplace(cls.increase, (y,), out_sinfo=R.Tensor((n * 3,), dtype="float32"), inplace_indices=[0])
#         return (x, z)
#
#     @R.function(pure=False)
#     def before_the_write(x: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n", 1), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         v_view: R.Tensor((n, 1), dtype="float32") = R.reshape(a, R.shape([n, 1]))
#         v: R.Tensor((n, 1), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", v_view, sinfo_args=(R.Tensor((n, 1), dtype="float32"),))
#         b: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.increase, (a,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#         return (v, b)
#
#     @R.function(private=True, pure=False)
#     def helper(w: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         cls = Module
#         r: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.increase, (w,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#         return r
#
#     @R.function(pure=False)
#     def in_a_function(x: R.Tensor(("n", 1), dtype="float32")) -> R.Tuple(R.Tensor(("n", 1), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         y_view: R.Tensor((n,), dtype="float32") = R.reshape(x, R.shape([n]))
#         y: R.Tensor((n,), dtype="float32") = R.call_pure_packed("vm.builtin.copy_tensor", y_view, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         z: R.Tensor((n,), dtype="float32") = cls.helper(y)
#         return (x, z)
#
#     @R.function(pure=False)
#     def alone(x: R.Tensor(("n", 1), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         cls = Module
#         a: R.Tensor((n, 1), dtype="float32") = R.exp(x)
#         y: R.Tensor((n,), dtype="float32") = R.reshape(a, R.shape([n]))
#         z: R.Tensor((n,), dtype="float32") = R.call_tir_inplace(cls.increase, (y,), out_sinfo=R.Tensor((n,), dtype="float32"), inplace_indices=[0])
#         other: R.Tensor((n,), dtype="float32") = R.reshape(x, R.shape([n]))
#         w: R.Tensor((n,), dtype="float32") = R.exp(other)
#         return (w, z)
