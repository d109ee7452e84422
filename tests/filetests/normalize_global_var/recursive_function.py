# Calls of a renamed function within itself are renamed, too, and so is its use as a value.
# test opt --passes=NormalizeGlobalVar
# no-run: the public function changes its name

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def before(k: R.Prim("int64"), x: R.Tensor((), "int64")) -> R.Object:
        R.func_attr({"global_symbol": "after"})
        cls = Module
        if k > 0:
            r: R.Object = cls.before(k - 1, x)
        else:
            r: R.Object = cls.before
        return r

# expect
# from pliant.script import ir as I, relax as R, tir as T
#
# @I.ir_module
# class Module:
#     @R.function
#     def after(k1: R.Prim(value="k"), x: R.Tensor((), dtype="int64")) -> R.Object:
#         k = T.int64()
#         R.func_attr({"global_symbol": "after"})
#         cls = Module
#         if R.prim_value(T.bool(1 <= k)):
#             gv: R.Object = cls.after(R.prim_value(k - 1), x)
#             r: R.Object = gv
#         else:
#             r: R.Object = cls.after
#         return r
