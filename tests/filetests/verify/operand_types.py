# Operands of different data types are rejected, and so are operators that do not take the type.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def mixed(x: R.Tensor((2,), "float32"), y: R.Tensor((2,), "int32")) -> R.Object:
        return R.add(x, y)  # error: PL0108

    @R.function
    def exp_of_integers(x: R.Tensor((2,), "int32")) -> R.Object:
        return R.exp(x)  # error: PL0108

    @R.function
    def sum_of_bools(x: R.Tensor((2,), "bool")) -> R.Object:
        return R.add(x, x)  # error: PL0108

    @R.function
    def shift_of_floats(x: R.Tensor((2,), "float32")) -> R.Object:
        return R.left_shift(x, x)  # error: PL0108

    @R.function
    def fraction_for_integers(x: R.Tensor((2,), "int32")) -> R.Object:
        return R.add(x, 0.5)  # error: PL0106 the number 0.5 does not fit the data type int32

    @R.function
    def number_out_of_range(x: R.Tensor((2,), "int8")) -> R.Object:
        return R.add(x, 200)  # error: PL0106 the number 200 does not fit the data type int8
