# Calls with effects are not merged, and values before such a call are not reused after it.
# test opt --passes=EliminateCommonSubexpr
# no-run: it calls a packed function

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = R.exp(x)
        p = R.call_packed("write", x, sinfo_args=R.Tensor((n,), "float32"))
        q = R.call_packed("write", x, sinfo_args=R.Tensor((n,), "float32"))
        b = R.exp(x)
        c = R.exp(x)
        d = R.add(R.add(a, b), R.add(R.add(p, q), c))
        return d

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         p: R.Tensor((n,), dtype="float32") = R.call_packed("write", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         q: R.Tensor((n,), dtype="float32") = R.call_packed("write", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         b: R.Tensor((n,), dtype="float32") = R.exp(x)
#         gv: R.Tensor((n,), dtype="float32") = R.add(a, b)
#         gv1: R.Tensor((n,), dtype="float32") = R.add(p, q)
#         gv2: R.Tensor((n,), dtype="float32") = R.add(gv1, b)
#         d: R.Tensor((n,), dtype="float32") = R.add(gv, gv2)
#         return d
