# Without symbols there is no shape heap: only the types of the parameters are checked.
# test opt --passes=LegalizeOps,ToNonDataflow,CallTIRRewrite,LowerAllocTensor,LowerRuntimeBuiltin,VMShapeLower

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        return R.exp(x)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor((2, 3), dtype="float32")) -> R.Tensor((2, 3), dtype="float32"):
#         R.func_attr({"relax.force_pure": True, "vm_shape_lowered": True})
#         cls = Module
#         null: R.Object = R.null_value()
#         _1: R.Tuple = R.call_packed("vm.builtin.check_tensor_info", x, R.prim_value(2), R.dtype("float32"), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         _2: R.Tuple = R.call_packed("vm.builtin.match_shape", x, null, R.prim_value(2), R.prim_value(0), R.prim_value(2), R.prim_value(0), R.prim_value(3), R.str("main: 'x'"), sinfo_args=(R.Tuple,))
#         storage: R.Object = R.vm.alloc_storage(R.shape([24]), R.prim_value(0), R.dtype("uint8"), R.str("global"))
#         gv: R.Tensor((2, 3), dtype="float32") = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([2, 3]), R.dtype("float32"))
#         _: R.Tuple = cls.exp(x, gv)
#         return gv
#
#     @T.prim_func(private=True)
#     def exp(A: T.Buffer((2, 3), "float32"), compute: T.Buffer((2, 3), "float32")):
#         T.func_attr({"tir.noalias": True})
#         for i0, i1 in T.grid(2, 3):
#             with T.block("compute"):
#                 v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
#                 T.reads(A[v_i0, v_i1])
#                 T.writes(compute[v_i0, v_i1])
#                 compute[v_i0, v_i1] = T.exp(A[v_i0, v_i1])
