# A match_cast gives a known size a second symbol; the first symbol replaces it in all types and shapes.
# test opt --passes=CanonicalizeBindings

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n * 2",), "float32"):
        n = T.int64()
        m = T.int64()
        with R.dataflow():
            y = R.match_cast(x, R.Tensor((m,), "float32"))
            z = R.zeros(R.shape([m * 2]), "float32")
            w = R.add(R.concat((y, x)), z)
            R.output(w)
        return w

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n * 2",), dtype="float32"):
#         n = T.int64()
#         with R.dataflow():
#             z: R.Tensor((n * 2,), dtype="float32") = R.zeros(R.shape([n * 2]))
#             lv: R.Tensor((n * 2,), dtype="float32") = R.concat((x, x))
#             w: R.Tensor((n * 2,), dtype="float32") = R.add(lv, z)
#             R.output(w)
#         return w
