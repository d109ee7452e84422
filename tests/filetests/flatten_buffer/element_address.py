# The address of an element has a linear index as well.
# test opt --passes=FlattenBuffer

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def tanh(A: T.Buffer((2, 8), "float32"), B: T.Buffer((2, 8), "float32")):
        for i in range(2):
            T.evaluate(T.call_extern("int64", "pliant_vec_tanh_f32", T.address_of(B[i, 0]), T.address_of(A[i, 0]), 8))

    @R.function
    def main(x: R.Tensor((2, 8), "float32")) -> R.Tensor((2, 8), "float32"):
        cls = Module
        return R.call_tir(cls.tanh, (x,), out_sinfo=R.Tensor((2, 8), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def tanh(A: T.Buffer((2, 8), "float32"), B: T.Buffer((2, 8), "float32")):
#         T.func_attr({"tir.flat": True})
#         for i in range(2):
#             T.evaluate(T.call_extern("int64", "pliant_vec_tanh_f32", T.address_of(B[i * 8]), T.address_of(A[i * 8]), 8))
#
#     @R.function
#     def main(x: R.Tensor((2, 8), dtype="float32")) -> R.Tensor((2, 8), dtype="float32"):
#         cls = Module
#         gv: R.Tensor((2, 8), dtype="float32") = R.call_tir(cls.tanh, (x,), out_sinfo=R.Tensor((2, 8), dtype="float32"))
#         return gv
