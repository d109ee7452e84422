# Constants that do not fit their type, or whose rows have different lengths.
# test verify

from pliant.script import ir as I, relax as R


@I.ir_module
class Module:
    @R.function
    def out_of_range(x: R.Tensor((2,), "int8")) -> R.Object:
        return R.add(x, R.const([1, 300], "int8"))  # error: PL0106 the value of the constant does not fit its data type int8

    @R.function
    def negative(x: R.Tensor((2,), "uint8")) -> R.Object:
        return R.add(x, R.const([1, -1], "uint8"))  # error: PL0106 the value of the constant does not fit its data type uint8

    @R.function
    def fraction(x: R.Tensor((), "int32")) -> R.Object:
        return R.add(x, R.const(0.5, "int32"))  # error: PL0106 the value of the constant does not fit its data type int32

    @R.function
    def ragged(x: R.Tensor((2,), "float32")) -> R.Object:
        return R.add(x, R.const([[1.0], [2.0, 3.0]], "float32"))  # error: PL0106 lists of numbers of equal lengths
