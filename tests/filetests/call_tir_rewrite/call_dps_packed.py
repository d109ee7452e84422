# A packed function in destination-passing style gets its inputs first and the allocated output last.
# test opt --passes=CallTIRRewrite

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n", 2), "float32")) -> R.Tensor(("n", 2), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_dps_packed("test.double_into", (x,), out_sinfo=R.Tensor((n, 2), "float32"))
            R.output(y)
        return y

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n", 2), dtype="float32")) -> R.Tensor(("n", 2), dtype="float32"):
#         n = T.int64()
#         R.func_attr({"relax.force_pure": True})
#         y: R.Tensor((n, 2), dtype="float32") = R.builtin.alloc_tensor(R.shape([n, 2]), R.dtype("float32"), R.prim_value(0))
#         _: R.Tuple = R.call_packed("test.double_into", x, y, sinfo_args=(R.Tuple,))
#         return y
