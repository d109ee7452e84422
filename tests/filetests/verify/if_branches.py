# Branches: values without a common type, missing results, and conditions that are not bools.
# test verify

from pliant.script import ir as I, relax as R, tir as T


@I.ir_module
class Module:
    @R.function
    def no_common_type(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor:
        if c:  # error: PL0107 'y' is R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) in one branch and R.Tensor((n,), dtype="float32") in the other
            y = (x, x)
        else:
            y = x
        return R.add(y, y)

    @R.function
    def no_common_result(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        if c:  # error: PL0107 the result is R.Shape([n]) in one branch and R.Tensor((n,), dtype="float32") in the other
            return R.shape([n])
        return x

    @R.function
    def ends_without(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        if c:  # error: PL0111 a branch of this 'if' returns a value, but the function can end without one
            return x

    @R.function
    def half_defined(c: R.Tensor((), "bool"), x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        if c:
            y = R.add(x, x)
            z = y
        else:
            z = x
        return R.add(y, z)  # error: PL0111 'y' is not defined in both branches

    @R.function
    def not_a_bool(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        if x:  # error: PL0107 the condition must be a scalar bool, but has type R.Tensor((n,), dtype="float32")
            return x
        return R.negative(x)

    @R.function
    def leaves_a_block(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):
            with R.dataflow():
                break  # error: PL0109 'break' is not allowed in a dataflow block
        return x

    @R.function
    def returns_from_a_block(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):
            with R.dataflow():
                return x  # error: PL0109 'return' is not allowed in a dataflow block
        return x

    @R.function
    def leaves_nothing(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        if R.prim_value(True):
            break  # error: PL0111 'break' is outside a loop
        return x

    # A local function inside a loop does not belong to the loop.
    @R.function
    def leaves_from_inside(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):
            @R.function
            def inner(y: R.Tensor(ndim=1)) -> R.Tensor(ndim=1):
                continue  # error: PL0111 'continue' is outside a loop
            x = R.add(x, x)
        return x

    @R.function
    def goes_on_after_a_break(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):
            break
            x = R.add(x, x)  # error: PL0111 no statement can follow a break
        return x

    @R.function
    def returns_two_kinds(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):  # error: PL0107 the loop returns R.Tensor((n,), dtype="float32") in one place and R.Tuple(R.Tensor((n,), dtype="float32"), R.Tensor((n,), dtype="float32")) in another
            if i > 3:
                return x
            if i > 2:
                return (x, x)
        return x

    @R.function
    def may_end_without_a_result(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        n = T.int64()
        for i in R.range(n):  # error: PL0111 the function can end without one
            if i > 3:
                return x

    @R.function
    def loops_over_values(x: R.Tensor(("n",), "float32")) -> R.Tensor(ndim=1):
        for i in x:  # error: PL0102 a graph function can only loop over a range of integers
            y = i
        return x

    @R.function
    def ends_by_a_tensor(x: R.Tensor((), "float32")) -> R.Tensor((), "float32"):
        for i in R.range(x):  # error: PL0106 a bound of a loop range must be an integer scalar, but has type R.Tensor((), dtype="float32")
            x = R.add(x, x)
        return x

    @R.function
    def steps_nowhere(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        for i in R.range(0, 10, 0):  # error: PL0106 the step of R.range must not be 0
            x = R.add(x, x)
        return x

    @R.function
    def in_dataflow(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        with R.dataflow():
            for i in R.range(3):  # error: PL0109 loops are not allowed in a dataflow block
                y = R.add(x, x)
        return x

    @R.function
    def after_the_loop(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        for i in R.range(3):
            y = R.add(x, x)
        return y  # error: PL0111 'y' is defined in the body of a loop

    @R.function
    def never_ends(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        while True:  # error: PL0102 this loop never ends
            x = R.add(x, x)
        return x

    @R.function
    def wrong_count(x: R.Tensor((), "int64")) -> R.Tensor((), "int64"):
        return R.while_loop(lambda a, b: a, lambda a: a, x)  # error: PL0105 a lambda of R.while_loop takes 2 parameters, but the loop has 1 state values
