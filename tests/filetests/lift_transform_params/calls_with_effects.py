# Calls with effects stay, and so do the values of parameters that the function writes to.
# test opt --passes=LiftTransformParams
# no-run: the parameters change

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @T.prim_func(private=True)
    def double(A: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("double"):
                vi = T.axis.spatial(4, i)
                A[vi] = A[vi] * T.float32(2)

    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32"), w: R.Tensor((4,), "float32"), v: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        R.func_attr({"num_input": 1})
        cls = Module
        a = R.exp(w)
        b = R.exp(v)
        c = R.call_tir_inplace(cls.double, (w,), inplace_indices=[0], out_sinfo=R.Tensor((4,), "float32"))
        d = R.add(R.add(a, b), R.add(c, x))
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @T.prim_func(private=True)
#     def double(A: T.Buffer((4,), "float32")):
#         for i in range(4):
#             with T.block("double"):
#                 vi = T.axis.spatial(4, i)
#                 A[vi] = A[vi] * T.float32(2.0)
#
#     @R.function(pure=False)
#     def main(x: R.Tensor((4,), dtype="float32"), w: R.Tensor((4,), dtype="float32"), b: R.Tensor((4,), dtype="float32")) -> R.Tensor((4,), dtype="float32"):
#         R.func_attr({"num_input": 1})
#         cls = Module
#         a: R.Tensor((4,), dtype="float32") = R.exp(w)
#         c: R.Tensor((4,), dtype="float32") = R.call_tir_inplace(cls.double, (w,), out_sinfo=R.Tensor((4,), dtype="float32"), inplace_indices=[0])
#         gv: R.Tensor((4,), dtype="float32") = R.add(a, b)
#         gv1: R.Tensor((4,), dtype="float32") = R.add(c, x)
#         d: R.Tensor((4,), dtype="float32") = R.add(gv, gv1)
#         return d
#
#     @R.function
#     def main_transform_params(params: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32"))) -> R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")):
#         R.func_attr({"num_input": 0})
#         with R.dataflow():
#             w: R.Tensor((4,), dtype="float32") = params[0]
#             v: R.Tensor((4,), dtype="float32") = params[1]
#             b: R.Tensor((4,), dtype="float32") = R.exp(v)
#             gv: R.Tuple(R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="float32")) = (w, b)
#             R.output(gv)
#         return gv
