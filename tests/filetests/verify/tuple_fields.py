# Fields beyond the end of a tuple, fields of what is no tuple, and a tuple as an operand.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def beyond(t: R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "float32"))) -> R.Object:
        return t[2]  # error: PL0106 index 2 is out of range: the tuple or shape has 2 fields

    @R.function
    def of_the_empty_tuple(x: R.Tensor((2,), "float32")) -> R.Object:
        t = ()
        return t[0]  # error: PL0106 index 0 is out of range: the tuple or shape has 0 fields

    @R.function
    def of_a_number(x: R.Prim("int64")) -> R.Object:
        return x[0]  # error: PL0107 a value of type R.Prim("int64") cannot be indexed

    @R.function
    def as_an_operand(x: R.Tensor((2,), "float32")) -> R.Object:
        return R.exp((x, x))  # error: PL0108
