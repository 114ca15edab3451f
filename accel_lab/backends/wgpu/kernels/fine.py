"""Functions of float32 that are computed in float64, and so are right to the last place or nearly.

WGSL's own functions may be off by a part in a thousand. Each is a series around a few points; how
far it reaches says the remainder of the series, which is below 1e-12.
"""

import math

from accel_lab.backends.wgpu.kernels.functions import FUNCTIONS

_NAN = "bitcast<f64>(0x7ff8000000000000lu)"
_INF = "bitcast<f64>(0x7ff0000000000000lu)"


def _number(value: float) -> str:
    text = repr(value)
    return f"{text}lf" if "." in text or "e" in text else f"{text}.0lf"


def _series(variable: str, coefficients: list[float]) -> str:
    """Return a polynomial, the coefficient of 1 first, as Horner writes it."""
    text = _number(coefficients[-1])
    for one in reversed(coefficients[:-1]):
        text = f"({text} * {variable} + {_number(one)})"
    return text


_EXP = _series("r", [1 / math.factorial(n) for n in range(14)])
_ATANH = _series("t", [2 / (2 * n + 1) for n in range(1, 10)])
_ATAN = _series("t", [(-1) ** n / (2 * n + 1) for n in range(16)])
SIN = _series("t", [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, 10)])
"""Of sin(r) / r - 1, divided by r**2 = t."""
COS = _series("t", [(-1) ** n / math.factorial(2 * n) for n in range(9)])
_PI, _LN2 = _number(math.pi), _number(math.log(2))

FUNCTIONS.update(
    {
        "exp_fine": f"""fn exp_fine(x: f64) -> f64 {{
  if (is_nan_f64(x)) {{ return x; }}
  if (x > 300.0lf) {{ return {_INF}; }}
  if (x < -300.0lf) {{ return 0.0lf; }}
  let k = floor(x * {_number(1 / math.log(2))} + 0.5lf);
  let r = x - k * {_LN2};
  return {_EXP} * bitcast<f64>(u64(i64(k) + 1023li) << 52u);
}}""",
        "log_fine": f"""fn log_fine(x: f64) -> f64 {{
  if (is_nan_f64(x) || x < 0.0lf) {{ return {_NAN}; }}
  if (x == 0.0lf) {{ return -{_INF}; }}
  if (is_inf_f64(x)) {{ return x; }}
  let b = bitcast<u64>(x);
  var e = f64(i64(b >> 52u) - 1023li);
  var m = bitcast<f64>((b & 0xffffffffffffflu) | 0x3ff0000000000000lu);
  if (m > 1.4142135623730951lf) {{ m = m * 0.5lf; e = e + 1.0lf; }}
  // As fdlibm's e_log.c: what is large is added last, and ln 2 has two parts.
  let f = m - 1.0lf; let s = f / (2.0lf + f); let t = s * s;
  let half = 0.5lf * f * f; let rest = t * {_ATANH};
  let low = s * (half + rest) + e * 1.90821492927058770002e-10lf;
  return e * 6.93147180369123816490e-01lf - ((half - low) - f);
}}""",
        "expm1_fine": """fn expm1_fine(x: f64) -> f64 {
  if (abs(x) < 0.001lf) {
    return x + x * x * (0.5lf + x * (0.16666666666666666lf + x * 0.041666666666666664lf));
  }
  return exp_fine(x) - 1.0lf;
}""",
        "log1p_fine": """fn log1p_fine(x: f64) -> f64 {
  if (abs(x) < 0.0001lf) { return x - x * x * (0.5lf - x * 0.3333333333333333lf); }
  return log_fine(1.0lf + x);
}""",
        "log2_fine": f"""fn log2_fine(x: f64) -> f64 {{
  return log_fine(x) * {_number(1 / math.log(2))};
}}""",
        "log10_fine": f"""fn log10_fine(x: f64) -> f64 {{
  return log_fine(x) * {_number(1 / math.log(10))};
}}""",
        # What is left of an angle after whole quarters of a turn, and how many these were, mod 4.
        # Of large ones the bits of 2 / pi are multiplied that count (Payne and Hanek, 1983).
        "left_of_quarters": f"""fn left_of_quarters(x: f64) -> vec2<f64> {{
  let size = abs(x);
  if (size < 1000000.0lf) {{
    let k = floor(x * {_number(2 / math.pi)} + 0.5lf);
    let r = (x - k * 1.57079632673412561417lf) - k * 6.07710050650619224932e-11lf;
    return vec2<f64>(r, k - 4.0lf * floor(k * 0.25lf));
  }}
  let b = bitcast<u32>(f32(size));
  let e = i32(b >> 23u) - 150; let m = u64((b & 0x7fffffu) | 0x800000u);
  let at = u32(e + 30); let word = at >> 5u; let by = u64(at & 31u);
  var bits = array<u64, 9>(0lu, 0xa2f9836elu, 0x4e441529lu, 0xfc2757d1lu, 0xf534ddc0lu,
    0xdb629599lu, 0x3c439041lu, 0xfe5163ablu, 0xdebbc561lu);
  var w = array<u64, 3>();
  for (var n = 0u; n < 3u; n = n + 1u) {{
    let both = (bits[word + n] << 32u) | bits[word + n + 1u];
    w[n] = ((both << u32(by)) >> 32u) & 0xfffffffflu;
  }}
  let p0 = m * w[2]; let p1 = m * w[1] + (p0 >> 32u);
  let p2 = (m * w[0] + (p1 >> 32u)) & 0xfffffffflu;
  var q = f64(p2 >> 30u);
  var part = f64(((p2 & 0x3ffffffflu) << 32u) | (p1 & 0xfffffffflu)) * {_number(2.0**-62)};
  if (part > 0.5lf) {{ part = part - 1.0lf; q = q + 1.0lf; }}
  part = part * {_number(math.pi / 2)};
  if (x < 0.0lf) {{ part = -part; q = 4.0lf - q; }}
  return vec2<f64>(part, q - 4.0lf * floor(q * 0.25lf));
}}""",
        "wave_fine": f"""fn wave_fine(x: f64, ahead: f64) -> f64 {{
  if (is_nan_f64(x) || is_inf_f64(x)) {{ return {_NAN}; }}
  let found = left_of_quarters(x);
  let r = found.x; let t = r * r; let turn = found.y + ahead;
  let q = turn - 4.0lf * floor(turn * 0.25lf);
  let sine = r + r * t * {SIN}; let cosine = {COS};
  let made = select(cosine, sine, q == 0.0lf || q == 2.0lf);
  return select(made, -made, q >= 2.0lf);
}}""",
        "sin_fine": """fn sin_fine(x: f64) -> f64 {
  if (x == 0.0lf) { return x; }
  return wave_fine(x, 0.0lf);
}""",
        "cos_fine": "fn cos_fine(x: f64) -> f64 { return wave_fine(x, 1.0lf); }",
        "tan_fine": "fn tan_fine(x: f64) -> f64 { return sin_fine(x) / cos_fine(x); }",
        "tanh_fine": """fn tanh_fine(x: f64) -> f64 {
  let size = abs(x);
  if (is_nan_f64(x) || x == 0.0lf) { return x; }
  if (size < 0.0001lf) { return x - x * x * x * 0.3333333333333333lf; }
  if (size > 30.0lf) { return signed_f64(1.0lf, x); }
  let t = expm1_fine(2.0lf * size);
  return signed_f64(t / (t + 2.0lf), x);
}""",
        "sinh_fine": """fn sinh_fine(x: f64) -> f64 {
  let size = abs(x);
  if (is_nan_f64(x) || x == 0.0lf) { return x; }
  if (size < 0.01lf) {
    let t = x * x;
    return x * (1.0lf + t * (0.16666666666666666lf + t * (0.008333333333333333lf
      + t * 0.0001984126984126984lf)));
  }
  let e = exp_fine(size);
  return signed_f64((e - 1.0lf / e) * 0.5lf, x);
}""",
        "cosh_fine": """fn cosh_fine(x: f64) -> f64 {
  let e = exp_fine(abs(x));
  return (e + 1.0lf / e) * 0.5lf;
}""",
        "atan_fine": f"""fn atan_fine(x: f64) -> f64 {{
  if (is_nan_f64(x) || x == 0.0lf) {{ return x; }}
  var size = abs(x); var base = 0.0lf; var turned = false;
  if (is_inf_f64(x)) {{ return signed_f64({_number(math.pi / 2)}, x); }}
  if (size > 1.0lf) {{ size = 1.0lf / size; turned = true; }}
  if (size > 0.25lf) {{
    size = (size - 0.5lf) / (1.0lf + 0.5lf * size);
    base = {_number(math.atan(0.5))};
  }}
  let t = size * size;
  var made = base + size * {_ATAN};
  if (turned) {{ made = {_number(math.pi / 2)} - made; }}
  return signed_f64(made, x);
}}""",
        "atan2_fine": f"""fn atan2_fine(y: f64, x: f64) -> f64 {{
  if (is_nan_f64(x) || is_nan_f64(y)) {{ return {_NAN}; }}
  var made = {_number(math.pi / 2)};
  if (is_inf_f64(x) && is_inf_f64(y)) {{ made = {_number(math.pi / 4)}; }}
  else if (y == 0.0lf) {{ made = 0.0lf; }}
  else if (x != 0.0lf) {{ made = atan_fine(abs(y) / abs(x)); }}
  if (negative_f64(x)) {{ made = {_PI} - made; }}
  return signed_f64(made, y);
}}""",
        "asin_fine": f"""fn asin_fine(x: f64) -> f64 {{
  if (is_nan_f64(x) || abs(x) > 1.0lf) {{ return {_NAN}; }}
  return atan2_fine(x, sqrt((1.0lf - x) * (1.0lf + x)));
}}""",
        "acos_fine": f"""fn acos_fine(x: f64) -> f64 {{
  if (is_nan_f64(x) || abs(x) > 1.0lf) {{ return {_NAN}; }}
  return atan2_fine(sqrt((1.0lf - x) * (1.0lf + x)), x);
}}""",
        "asinh_fine": """fn asinh_fine(x: f64) -> f64 {
  let size = abs(x);
  if (is_nan_f64(x) || is_inf_f64(x) || x == 0.0lf) { return x; }
  if (size < 0.001lf) { return x - x * x * x * (0.16666666666666666lf - x * x * 0.075lf); }
  return signed_f64(log_fine(size + sqrt(size * size + 1.0lf)), x);
}""",
        "acosh_fine": f"""fn acosh_fine(x: f64) -> f64 {{
  if (is_nan_f64(x) || x < 1.0lf) {{ return {_NAN}; }}
  return log_fine(x + sqrt((x - 1.0lf) * (x + 1.0lf)));
}}""",
        "atanh_fine": f"""fn atanh_fine(x: f64) -> f64 {{
  let size = abs(x);
  if (is_nan_f64(x) || size > 1.0lf) {{ return {_NAN}; }}
  if (size == 1.0lf) {{ return signed_f64({_INF}, x); }}
  if (size < 0.001lf) {{ return x + x * x * x * (0.3333333333333333lf + x * x * 0.2lf); }}
  return 0.5lf * log_fine((1.0lf + x) / (1.0lf - x));
}}""",
        "pow_fine": f"""fn pow_fine(a: f64, b: f64) -> f64 {{
  if (b == 0.0lf || a == 1.0lf) {{ return 1.0lf; }}
  if (is_nan_f64(a) || is_nan_f64(b)) {{ return {_NAN}; }}
  let far = is_inf_f64(b) || abs(b) >= 9007199254740992.0lf;
  let is_whole = far || floor(b) == b;
  let is_odd = !far && is_whole && floor(b * 0.5lf) * 2.0lf != b;
  let size = abs(a);
  if (a < 0.0lf && !is_inf_f64(a) && !is_whole) {{ return {_NAN}; }}
  var made = 1.0lf;
  if (size != 1.0lf) {{ made = exp_fine(b * log_fine(size)); }}
  return select(made, -made, is_odd && negative_f64(a));
}}""",
        "hypot_fine": f"""fn hypot_fine(a: f64, b: f64) -> f64 {{
  if (is_inf_f64(a) || is_inf_f64(b)) {{ return {_INF}; }}
  return sqrt(a * a + b * b);
}}""",
        "logaddexp_fine": f"""fn logaddexp_fine(a: f64, b: f64) -> f64 {{
  if (is_nan_f64(a) || is_nan_f64(b)) {{ return {_NAN}; }}
  if (a == b) {{ return a + {_LN2}; }}
  return max(a, b) + log1p_fine(exp_fine(-abs(a - b)));
}}""",
    }
)

FINE: dict[str, str] = {
    **{op: op + "_fine({a})" for op in ("exp", "log", "sin", "cos", "tan", "tanh", "sinh", "cosh")},
    **{op: op + "_fine({a})" for op in ("expm1", "log1p", "log2", "log10")},
    **{f"arc{op}": f"a{op}" + "_fine({a})" for op in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "power": "pow_fine({a}, {b})",
    "arctan2": "atan2_fine({a}, {b})",
    "hypot": "hypot_fine({a}, {b})",
    "logaddexp": "logaddexp_fine({a}, {b})",
}
"""NumPy's names, and what computes them in float64."""

ROUGH: dict[str, str] = {
    **{op: op + "({a})" for op in ("exp", "log", "log2", "sin", "cos", "tan", "sinh", "cosh")},
    "tanh": "tanh(clamp({a}, -20.0, 20.0))",
    **{f"arc{op}": f"a{op}" + "({a})" for op in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}
"""WGSL's own, for adapters without float64; as near as the driver has them."""
