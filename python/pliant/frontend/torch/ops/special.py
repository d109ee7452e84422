"""Special functions: gamma, error and Bessel functions, and orthogonal polynomials.

They are computed in float64. Bessel functions are integrals of smooth periodic or rapidly decreasing functions, for which the
trapezoidal rule converges exponentially; large arguments use the asymptotic expansions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from pliant import te, tir
from pliant.frontend.torch.function_importer import FunctionImporter
from pliant.frontend.torch.ops.binary import cx_broadcast
from pliant.frontend.torch.ops.unary import Converter, _erfinv

WIDE = "float64"


def _c(value: float) -> Any:
    return tir.const(float(value), WIDE)


def _wide(formula: Callable[..., Any], name: str) -> Converter:
    """The converter to a loop function that applies a formula on float64 scalars to operands that it broadcasts."""

    def convert(cx: FunctionImporter, *operands: Any, **_: Any) -> Any:
        dtype = cx.out_dtype
        wide = cx_broadcast(cx, *(cx.tensor(x, WIDE) for x in operands))

        def compute(*tensors: Any) -> Any:
            return te.compute(tensors[0].shape, lambda *i: formula(*(t(*i) for t in tensors)), name=name)

        return cx.cast(cx.te(compute, *wide, primfunc_name_hint=name), dtype)

    return convert


def _sum_over(cx: FunctionImporter, x: Any, count: int, term: Callable[[Any, Any], Any], name: str) -> Any:
    """The sum of ``term(x, k)`` over ``k`` in ``0 .. count``, elementwise in float64."""

    def compute(a: Any) -> Any:
        k = te.reduce_axis((0, count), "k")
        return te.compute(a.shape, lambda *i: te.sum(term(a(*i), k.var.astype(WIDE)), axis=k), name=name)

    return cx.te(compute, x, primfunc_name_hint=name)


def _combined(cx: FunctionImporter, formula: Callable[..., Any], *tensors: Any, name: str) -> Any:
    def compute(*operands: Any) -> Any:
        return te.compute(operands[0].shape, lambda *i: formula(*(t(*i) for t in operands)), name=name)

    return cx.te(compute, *tensors, primfunc_name_hint=name)


# Gamma functions

LANCZOS = (0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313, -176.61502916214059, 12.507343278686905,
           -0.13857109526572012, 9.9843695780195716e-6, 1.5056327351493116e-7)  # fmt: skip


def _log_gamma_positive(x: Any) -> Any:
    """Lanczos' approximation for ``x >= 0.5``."""
    x = x - _c(1.0)
    total = _c(LANCZOS[0])
    for k, coefficient in enumerate(LANCZOS[1:], start=1):
        total = total + _c(coefficient) / (x + _c(k))
    t = x + _c(7.5)
    return _c(0.5 * math.log(2 * math.pi)) + (x + _c(0.5)) * te.log(t) - t + te.log(total)


def _log_gamma(x: Any) -> Any:
    reflected = te.log(_c(math.pi) / tir.abs(te.sin(_c(math.pi) * (x - te.floor(x))))) - _log_gamma_positive(_c(1.0) - x)
    pole = tir.all(x <= _c(0.0), te.floor(x).equal(x))
    value = tir.Select(x < _c(0.5), reflected, _log_gamma_positive(te.max(x, _c(0.5))))
    return tir.Select(tir.any(pole, te.isinf(x)), te.infinity(WIDE), value)


def _digamma(x: Any) -> Any:
    def positive(v: Any) -> Any:
        shift = _c(0.0)
        for k in range(8):
            shift = shift - _c(1.0) / (v + _c(k))
        v = v + _c(8.0)
        inverse = _c(1.0) / (v * v)
        series = _c(0.0)
        for coefficient in (1 / 12, -691 / 32760, 1 / 132, -1 / 240, 1 / 252, -1 / 120, 1 / 12):
            series = series * inverse + _c(coefficient)
        return shift + te.log(v) - _c(0.5) / v - series * inverse

    angle = _c(math.pi) * (x - te.floor(x))
    reflected = positive(_c(1.0) - x) - _c(math.pi) * te.cos(angle) / te.sin(angle)
    pole = tir.all(x < _c(0.0), te.floor(x).equal(x))
    value = tir.Select(x > _c(0.0), positive(te.max(x, _c(1e-300))), reflected)
    value = tir.Select(x.equal(_c(0.0)), te.copysign(te.infinity(WIDE), -x), value)
    return tir.Select(pole, _c(math.nan), value)


ZETA_TERMS = 24
BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000)
"""Coefficients of the Euler-Maclaurin formula."""


def zeta(cx: FunctionImporter, s: Any, q: Any) -> Any:
    """The Hurwitz zeta function: the first terms, and the Euler-Maclaurin formula for the others."""
    dtype = cx.out_dtype
    s, q = cx_broadcast(cx, cx.tensor(s, WIDE), cx.tensor(q, WIDE))

    def head(a: Any, b: Any) -> Any:
        k = te.reduce_axis((0, ZETA_TERMS), "k")
        return te.compute(a.shape, lambda *i: te.sum(te.power(b(*i) + k.var.astype(WIDE), -a(*i)), axis=k), name="zeta_head")

    def tail(first: Any, a: Any, b: Any) -> Any:
        x = b + _c(ZETA_TERMS)
        result = first + te.power(x, _c(1.0) - a) / (a - _c(1.0)) + _c(0.5) * te.power(x, -a)
        factor = a * te.power(x, -a - _c(1.0))
        for k, coefficient in enumerate(BERNOULLI):
            result = result + _c(coefficient) * factor
            factor = factor * (a + _c(2 * k + 1)) * (a + _c(2 * k + 2)) / (x * x)
        pole = tir.all(b <= _c(0.0), te.floor(b).equal(b))
        undefined = tir.any(a < _c(1.0), tir.all(b <= _c(0.0), tir.Not(te.floor(a).equal(a)), tir.Not(pole)))
        result = tir.Select(tir.any(pole, a.equal(_c(1.0))), te.infinity(WIDE), result)
        return tir.Select(undefined, _c(math.nan), result)

    return cx.cast(_combined(cx, tail, cx.te(head, s, q), s, q, name="zeta"), dtype)


def polygamma(cx: FunctionImporter, order: int, x: Any) -> Any:
    """Converts ``polygamma``: order 0 to ``digamma``, and higher orders to the Hurwitz zeta function."""
    if order == 0:
        return _wide(_digamma, "digamma")(cx, x)
    factor = (1 if order % 2 else -1) * math.factorial(order)
    return cx.ops.multiply(cx.tensor(factor, cx.out_dtype), zeta(cx, float(order + 1), x))


# Error functions


def _scaled_erfc_tail(x: Any) -> Any:
    """``exp(x * x) * erfc(x)`` for ``x >= 2``, by its continued fraction."""
    fraction = x
    for k in range(60, 0, -1):
        fraction = x + _c(k / 2) / fraction
    return _c(1 / math.sqrt(math.pi)) / fraction


def _erfc(x: Any) -> Any:
    size = tir.abs(x)
    tail = te.exp(-size * size) * _scaled_erfc_tail(te.max(size, _c(2.0)))
    tail = tir.Select(x > _c(0.0), tail, _c(2.0) - tail)
    return tir.Select(size < _c(2.0), _c(1.0) - te.erf(x), tail)


def _erfcx(x: Any) -> Any:
    direct = te.exp(x * x) * _erfc(te.min(x, _c(2.0)))
    return tir.Select(x < _c(2.0), direct, _scaled_erfc_tail(te.max(x, _c(2.0))))


def _ndtri(p: Any) -> Any:
    return _c(math.sqrt(2.0)) * _erfinv(_c(2.0) * p - _c(1.0))


# Bessel functions

NODES = 96
"""Nodes of the trapezoidal rule over one period."""

LARGE = 30.0
"""Arguments above this one use the asymptotic expansion."""


def _asymptotic(order: int, alternating: bool) -> tuple[list[float], list[float]]:
    """The coefficients of the expansion in ``1 / x``, those of even and of odd powers."""
    coefficients, value = [], 1.0
    for k in range(1, 17):
        coefficients.append(value)
        value *= (4 * order * order - (2 * k - 1) ** 2) / (8 * k)
    if alternating:
        even = [c * (-1) ** k for k, c in enumerate(coefficients[::2])]
        odd = [c * (-1) ** k for k, c in enumerate(coefficients[1::2])]
        return even, odd
    return coefficients, []


def _powers(x: Any, coefficients: list[float], step: Any) -> Any:
    result = _c(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = result * step + _c(c)
    return result


def modified_first(order: int, scaled: bool) -> Converter:
    """``I_n``, or ``exp(-abs(x)) I_n``."""
    coefficients, _ = _asymptotic(order, alternating=False)

    def term(x: Any, k: Any) -> Any:
        angle = k * _c(2 * math.pi / NODES)
        return te.exp(tir.abs(x) * (te.cos(angle) - _c(1.0))) * te.cos(angle * _c(order))

    def finish(x: Any, total: Any) -> Any:
        size = te.max(tir.abs(x), _c(LARGE))
        series = _powers(x, [c * (-1) ** k for k, c in enumerate(coefficients)], _c(1.0) / size)
        value = tir.Select(tir.abs(x) < _c(LARGE), total / _c(NODES), series / te.sqrt(_c(2 * math.pi) * size))
        value = tir.Select(x < _c(0.0), -value, value) if order % 2 else value
        return value if scaled else value * te.exp(tir.abs(x))

    return _from_sum(term, finish, NODES, f"bessel_i{order}")


def first_kind(order: int) -> Converter:
    """``J_n``."""

    def term(x: Any, k: Any) -> Any:
        angle = k * _c(2 * math.pi / NODES)
        return te.cos(angle * _c(order) - x * te.sin(angle))

    def finish(x: Any, total: Any) -> Any:
        return tir.Select(tir.abs(x) < _c(LARGE), total / _c(NODES), _hankel(order, x, second=False))

    return _from_sum(term, finish, NODES, f"bessel_j{order}")


def _hankel(order: int, x: Any, second: bool) -> Any:
    """The asymptotic expansion of ``J_n``, or of ``Y_n``."""
    even, odd = _asymptotic(order, alternating=True)
    size = te.max(tir.abs(x), _c(LARGE))
    step = _c(1.0) / (size * size)
    p, q = _powers(x, even, step), _powers(x, odd, step) / size
    phase = size - _c((order / 2 + 0.25) * math.pi)
    wave = p * te.sin(phase) + q * te.cos(phase) if second else p * te.cos(phase) - q * te.sin(phase)
    value = wave * te.sqrt(_c(2 / math.pi) / size)
    return tir.Select(x < _c(0.0), -value, value) if order % 2 else value


STEP, STEPS = 0.0625, 400
"""The step and the number of nodes of the integrals from 0 to infinity."""


def modified_second(order: int, scaled: bool) -> Converter:
    """``K_n``, or ``exp(x) K_n``, by its integral over ``exp(-x cosh t) cosh(n t)``."""

    def term(x: Any, k: Any) -> Any:
        t = k * _c(STEP)
        cosh = (te.exp(t) + te.exp(-t)) * _c(0.5)
        weight = tir.Select(k.equal(_c(0.0)), _c(0.5), _c(1.0))
        return weight * te.exp(-x * (cosh - _c(1.0))) * (cosh if order else _c(1.0))

    def finish(x: Any, total: Any) -> Any:
        value = total * _c(STEP)
        value = value if scaled else value * te.exp(-x)
        value = tir.Select(x.equal(_c(0.0)), te.infinity(WIDE), value)
        return tir.Select(x < _c(0.0), _c(math.nan), value)

    return _from_sum(term, finish, STEPS, f"bessel_k{order}")


PANELS = 512
"""Panels of Simpson's rule for the oscillating part of ``Y_n``."""


def second_kind(order: int) -> Converter:
    """``Y_n``, by its integral representation; the part over an infinite range decreases like ``exp(-x sinh t)``."""

    def term(x: Any, k: Any) -> Any:
        angle = k * _c(math.pi / PANELS)
        ends = tir.any(k.equal(_c(0.0)), k.equal(_c(PANELS)))
        odd = te.fmod(k, _c(2.0)).equal(_c(1.0))
        weight = tir.Select(ends, _c(1.0), tir.Select(odd, _c(4.0), _c(2.0))) * _c(1 / (3 * PANELS))
        return weight * te.sin(x * te.sin(angle) - _c(order) * angle)

    def decreasing(x: Any, k: Any) -> Any:
        t = k * _c(STEP / 4)
        sinh = (te.exp(t) - te.exp(-t)) * _c(0.5)
        ends, odd = k.equal(_c(0.0)), te.fmod(k, _c(2.0)).equal(_c(1.0))
        weight = tir.Select(ends, _c(1.0), tir.Select(odd, _c(4.0), _c(2.0))) * _c(STEP / 12 / math.pi)
        growth = te.exp(t) - te.exp(-t) if order else _c(2.0)
        return weight * growth * te.exp(-x * sinh)

    def convert(cx: FunctionImporter, x: Any, **_: Any) -> Any:
        dtype = cx.out_dtype
        wide = cx.tensor(x, WIDE)
        first = _sum_over(cx, wide, PANELS + 1, term, f"bessel_y{order}_oscillating")
        second = _sum_over(cx, wide, 4 * STEPS, decreasing, f"bessel_y{order}_decreasing")

        def finish(v: Any, a: Any, b: Any) -> Any:
            value = tir.Select(v < _c(LARGE), a - b, _hankel(order, v, second=True))
            value = tir.Select(v.equal(_c(0.0)), -te.infinity(WIDE), value)
            return tir.Select(v < _c(0.0), _c(math.nan), value)

        return cx.cast(_combined(cx, finish, wide, first, second, name=f"bessel_y{order}"), dtype)

    return convert


def _from_sum(term: Callable[..., Any], finish: Callable[..., Any], count: int, name: str) -> Converter:
    def convert(cx: FunctionImporter, x: Any, **_: Any) -> Any:
        dtype = cx.out_dtype
        wide = cx.tensor(x, WIDE)
        return cx.cast(_combined(cx, finish, wide, _sum_over(cx, wide, count, term, f"{name}_sum"), name=name), dtype)

    return convert


def _spherical(x: Any) -> Any:
    near = _c(1.0) - x * x / _c(6.0)
    return tir.Select(tir.abs(x) < _c(1e-4), near, te.sin(x) / tir.Select(x.equal(_c(0.0)), _c(1.0), x))


# Orthogonal polynomials

Recurrence = tuple[Callable[[Any], Any], Callable[[Any, Any, Any, Any], Any]]
"""The polynomial of degree 1, and the next one from ``x``, the degree, the last and the last but one."""


def _chebyshev(first: Callable[[Any], Any]) -> Recurrence:
    return first, lambda x, n, p, q: _c(2.0) * x * p - q


POLYNOMIALS: dict[str, Recurrence] = {
    "chebyshev_polynomial_t": _chebyshev(lambda x: x),
    "chebyshev_polynomial_u": _chebyshev(lambda x: x + x),
    "chebyshev_polynomial_v": _chebyshev(lambda x: x + x - _c(1.0)),
    "chebyshev_polynomial_w": _chebyshev(lambda x: x + x + _c(1.0)),
    "hermite_polynomial_h": (lambda x: x + x, lambda x, n, p, q: _c(2.0) * (x * p - (n - _c(1.0)) * q)),
    "hermite_polynomial_he": (lambda x: x, lambda x, n, p, q: x * p - (n - _c(1.0)) * q),
    "laguerre_polynomial_l": (lambda x: _c(1.0) - x, lambda x, n, p, q: ((n + n - _c(1.0) - x) * p - (n - _c(1.0)) * q) / n),
    "legendre_polynomial_p": (lambda x: x, lambda x, n, p, q: ((n + n - _c(1.0)) * x * p - (n - _c(1.0)) * q) / n),
}


def polynomial(recurrence: Recurrence, shifted: bool = False) -> Converter:
    """The polynomial whose degree is the second operand, by its recurrence. Degrees are truncated, and a negative one gives 0."""
    first, following = recurrence

    def convert(cx: FunctionImporter, x: Any, n: Any) -> Any:
        dtype = cx.out_dtype
        wide = [cx.ops.flatten(v) for v in cx_broadcast(cx, cx.tensor(x, WIDE), cx.tensor(n, WIDE))]
        if shifted:
            wide[0] = cx.ops.subtract(cx.ops.add(wide[0], wide[0]), cx.tensor(1.0, WIDE))

        def compute(a: Any, degrees: Any) -> Any:
            def body(inputs: Any, outputs: Any) -> Any:
                builder = tir.ir_builder.create()
                values, orders = (builder.buffer_ptr(b) for b in inputs)
                result = builder.buffer_ptr(outputs[0])
                with builder.for_range(0, a.shape[0], name="i") as i:
                    last = builder.allocate(WIDE, (2,), name="last", scope="local")
                    degree = orders[i]
                    last[0], last[1] = _c(1.0), first(values[i])
                    with builder.for_range(0, te.max(te.floor(degree).astype("int64") - 1, 0), name="k") as k:
                        new = builder.allocate(WIDE, (1,), name="new", scope="local")
                        new[0] = following(values[i], k.astype(WIDE) + _c(2.0), last[1], last[0])
                        last[0] = last[1]
                        last[1] = new[0]
                    result[i] = tir.Select(degree <= _c(-1.0), _c(0.0), tir.Select(degree < _c(1.0), _c(1.0), last[1]))
                return builder.get()

            return te.extern([a.shape], [a, degrees], body, name="polynomial", dtype=[WIDE])

        return cx.cast(cx.ops.reshape(cx.te(compute, *wide, primfunc_name_hint="polynomial"), cx.out_shape), dtype)

    return convert


def _polynomial_table() -> dict[str, Converter]:
    table: dict[str, Converter] = {}
    for name, recurrence in POLYNOMIALS.items():
        for overload in ("default", "x_scalar", "n_scalar"):
            table[f"special_{name}.{overload}"] = polynomial(recurrence)
            if name.startswith("chebyshev"):
                table[f"special_shifted_{name}.{overload}"] = polynomial(recurrence, shifted=True)
    return table


TABLE: dict[str, Converter] = {
    **dict.fromkeys("lgamma special_gammaln prims.lgamma.default".split(), _wide(_log_gamma, "lgamma")),
    **dict.fromkeys("digamma special_digamma special_psi prims.digamma.default".split(), _wide(_digamma, "digamma")),
    **dict.fromkeys("polygamma special_polygamma".split(), polygamma),
    **dict.fromkeys("special_zeta prims.zeta.default".split(), zeta),
    **dict.fromkeys("erfc special_erfc prims.erfc.default".split(), _wide(_erfc, "erfc")),
    **dict.fromkeys("special_erfcx prims.erfcx.default".split(), _wide(_erfcx, "erfcx")),
    **dict.fromkeys("special_ndtri prims.ndtri.default".split(), _wide(_ndtri, "ndtri")),
    **dict.fromkeys("i0 special_i0 special_modified_bessel_i0 prims.bessel_i0.default".split(), modified_first(0, scaled=False)),
    **dict.fromkeys("special_i1 special_modified_bessel_i1 prims.bessel_i1.default".split(), modified_first(1, scaled=False)),
    **dict.fromkeys("special_i0e prims.bessel_i0e.default".split(), modified_first(0, scaled=True)),
    **dict.fromkeys("special_i1e prims.bessel_i1e.default".split(), modified_first(1, scaled=True)),
    **dict.fromkeys("special_bessel_j0 prims.bessel_j0.default".split(), first_kind(0)),
    **dict.fromkeys("special_bessel_j1 prims.bessel_j1.default".split(), first_kind(1)),
    "special_bessel_y0": second_kind(0),
    "special_bessel_y1": second_kind(1),
    "special_modified_bessel_k0": modified_second(0, scaled=False),
    "special_modified_bessel_k1": modified_second(1, scaled=False),
    "special_scaled_modified_bessel_k0": modified_second(0, scaled=True),
    "special_scaled_modified_bessel_k1": modified_second(1, scaled=True),
    **dict.fromkeys(
        "special_spherical_bessel_j0 prims.spherical_bessel_j0.default".split(), _wide(_spherical, "spherical_bessel_j0")
    ),
    **_polynomial_table(),
}
"""The converters of this family."""
