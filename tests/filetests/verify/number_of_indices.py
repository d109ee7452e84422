# The number of indices of an access must fit the buffer, or be 1 in a function of flat accesses.
# test verify

from pliant.script import ir as I, tir as T


@I.ir_module
class Module:
    @T.prim_func
    def plain(A: T.Buffer((4, 8), "float32")):
        A[5] = T.float32(0.0)  # error: PL0107 buffer 'A' has 2 dims, but is accessed with 1 indices

    @T.prim_func
    def flat(A: T.Buffer((4, 8), "float32")):
        T.func_attr({"tir.flat": True})
        A[1, 2] = T.float32(0.0)  # error: PL0107 buffer 'A' is accessed with 2 indices, but this function uses one linear index per access

    @T.prim_func
    def not_flat(A: T.Buffer((4, 8), "float32")):
        T.func_attr({"tir.flat": False})
        A[5] = T.float32(0.0)  # error: PL0107 buffer 'A' has 2 dims, but is accessed with 1 indices
