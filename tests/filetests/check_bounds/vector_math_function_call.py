# The ranges that an explicit call of a vector math function (`pliant_vec_*`) accesses are asserted.
# test opt --passes=CheckBounds

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    # The ranges accessed by an explicit call of a vector math function are checked.
    @T.prim_func
    def tanh(a: T.handle, b: T.handle):
        n = T.int64()
        A = T.match_buffer(a, (n,), "float32")
        B = T.match_buffer(b, (n,), "float32")
        T.evaluate(T.call_extern("int64", "pliant_vec_tanh_f32", T.address_of(B[0]), T.address_of(A[0]), n))

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Object:
        n = T.int64()
        cls = Module
        y = R.call_tir(cls.tanh, (x,), out_sinfo=R.Tensor((n,), "float32"))
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def tanh(a: T.handle, b: T.handle):
#         n = T.int64()
#         A = T.match_buffer(a, (n,), "float32")
#         B = T.match_buffer(b, (n,), "float32")
#         assert 0 <= n and n <= 1073741824, "IndexError: a call of 'pliant_vec_tanh_f32' accesses elements outside its buffers"
#         assert 0 <= 1 and 1 <= 1073741824, "IndexError: a call of 'pliant_vec_tanh_f32' accesses elements outside its buffers"
#         assert n <= 0 or 0 <= 0 and 0 <= 1 * n and 0 + (n - 1) * 1 < 1 * n, "IndexError: a call of 'pliant_vec_tanh_f32' accesses elements outside its buffers"
#         T.evaluate(T.call_extern("int64", "pliant_vec_tanh_f32", T.address_of(B[0]), T.address_of(A[0]), n))
#
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Object:
#         n = T.int64()
#         cls = Module
#         y: R.Tensor((n,), dtype="float32") = R.call_tir(cls.tanh, (x,), out_sinfo=R.Tensor((n,), dtype="float32"))
#         return y
