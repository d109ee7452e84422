# Scalar and tensor constants; large constants are listed in the metadata of the script.
# test print

from pliant.script import ir as I, relax as R

metadata = {
    "relax.expr.Constant": [
        I.tensor((17,), "uint8", "AAECAwQFBgcICQoLDA0ODxA="),
    ]
}


@I.ir_module
class Module:
    @R.function
    def main() -> R.Object:
        a = R.const([[1, 2], [3, 4]], "int32")
        b = R.const(0.1, "float32")
        c = R.const(float("inf"), "float64")
        d = R.const(True, "bool")
        e = metadata["relax.expr.Constant"][0]
        return (a, b, c, d, e)

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# metadata = {
#     "relax.expr.Constant": [
#         I.tensor((17,), "uint8", [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
#     ]
# }
#
# @I.ir_module
# class Module:
#     @R.function
#     def main() -> R.Object:
#         a: R.Tensor((2, 2), dtype="int32") = R.const([[1, 2], [3, 4]], "int32")
#         b: R.Tensor((), dtype="float32") = R.const(0.1, "float32")
#         c: R.Tensor((), dtype="float64") = R.const(float("inf"), "float64")
#         d: R.Tensor((), dtype="bool") = R.const(True, "bool")
#         e: R.Tensor((17,), dtype="uint8") = metadata["relax.expr.Constant"][0]
#         return (a, b, c, d, e)
