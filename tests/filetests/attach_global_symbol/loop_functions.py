# A public loop function gets its name as symbol, a private one does not, and a local function has no symbol.
# test opt --passes=AttachGlobalSymbol

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def public(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            B[i] = A[i]

    @T.prim_func(private=True)
    def hidden(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
        for i in range(2):
            B[i] = A[i] + T.float32(1)

    @R.function
    def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        cls = Module

        @R.function
        def inner(y: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            return R.call_tir(cls.public, (y,), out_sinfo=R.Tensor((2,), "float32"))

        z = inner(x)
        return R.call_tir(cls.hidden, (z,), out_sinfo=R.Tensor((2,), "float32"))

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func
#     def public(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
#         T.func_attr({"global_symbol": "public"})
#         for i in range(2):
#             B[i] = A[i]
#
#     @T.prim_func(private=True)
#     def hidden(A: T.Buffer((2,), "float32"), B: T.Buffer((2,), "float32")):
#         for i in range(2):
#             B[i] = A[i] + T.float32(1.0)
#
#     @R.function
#     def main(x: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#         R.func_attr({"global_symbol": "main"})
#         cls = Module
#         @R.function
#         def inner(y: R.Tensor((2,), dtype="float32")) -> R.Tensor((2,), dtype="float32"):
#             gv: R.Tensor((2,), dtype="float32") = R.call_tir(cls.public, (y,), out_sinfo=R.Tensor((2,), dtype="float32"))
#             return gv
#         z: R.Tensor((2,), dtype="float32") = inner(x)
#         gv1: R.Tensor((2,), dtype="float32") = R.call_tir(cls.hidden, (z,), out_sinfo=R.Tensor((2,), dtype="float32"))
#         return gv1
