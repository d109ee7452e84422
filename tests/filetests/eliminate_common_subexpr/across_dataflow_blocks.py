# Equal values in a later dataflow block are replaced by outputs of the earlier block.
# test opt --passes=EliminateCommonSubexpr

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("n",), "float32")) -> R.Tuple(R.Tensor(("n",), "float32"), R.Tensor(("n",), "float32")):
        with R.dataflow():
            lv = R.add(x, y)
            lv1 = R.add(y, x)
            gv = R.multiply(lv, lv1)
            R.output(gv)
        with R.dataflow():
            lv2 = R.add(x, y)
            gv1 = R.multiply(lv2, R.add(y, x))
            R.output(gv1)
        return (gv, gv1)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32"), y: R.Tensor(("n",), dtype="float32")) -> R.Tuple(R.Tensor(("n",), dtype="float32"), R.Tensor(("n",), dtype="float32")):
#         n = T.int64()
#         with R.dataflow():
#             lv: R.Tensor((n,), dtype="float32") = R.add(x, y)
#             lv1: R.Tensor((n,), dtype="float32") = R.add(y, x)
#             gv: R.Tensor((n,), dtype="float32") = R.multiply(lv, lv1)
#             R.output(gv)
#         return (gv, gv)
