# Calls with effects stay, in branches too, with everything that they need.
# test opt --passes=DeadCodeElimination
# no-run: it calls a packed function

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function(pure=False)
    def main(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        a = R.exp(x)
        b = R.sin(x)
        p = R.call_packed("note", a, sinfo_args=R.Tensor((n,), "float32"))
        if c:
            q = R.call_packed("note", x, sinfo_args=R.Tensor((n,), "float32"))
            dead = R.exp(q)
            r = R.add(q, q)
        else:
            r = R.cos(x)
        if c:
            s = R.add(x, b)
        else:
            s = R.cos(b)
        return x

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function(pure=False)
#     def main(c: R.Tensor((), dtype="bool"), x: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
#         n = T.int64()
#         a: R.Tensor((n,), dtype="float32") = R.exp(x)
#         p: R.Tensor((n,), dtype="float32") = R.call_packed("note", a, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#         if c:
#             q: R.Tensor((n,), dtype="float32") = R.call_packed("note", x, sinfo_args=(R.Tensor((n,), dtype="float32"),))
#             gv: R.Tensor((n,), dtype="float32") = R.add(q, q)
#             r: R.Tensor((n,), dtype="float32") = gv
#         else:
#             gv1: R.Tensor((n,), dtype="float32") = R.cos(x)
#             r: R.Tensor((n,), dtype="float32") = gv1
#         return x
