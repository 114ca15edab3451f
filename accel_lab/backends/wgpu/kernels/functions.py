"""Functions that WGSL lacks, or has only roughly, as text that a kernel takes as it needs it.

WGSL may assume that there is no NaN, and compares it as it likes: so bits are looked at.
"""

import re

FUNCTIONS: dict[str, str] = {
    "of_half": """fn of_half(h: u32) -> f32 {
  let s = (h & 0x8000u) << 16u; let e = (h >> 10u) & 31u; let m = h & 0x3ffu;
  if (e == 31u) { return bitcast<f32>(s | 0x7f800000u | (m << 13u)); }
  if (e == 0u) { return bitcast<f32>(s | bitcast<u32>(f32(m) * 5.9604644775390625e-8)); }
  return bitcast<f32>(s | ((e + 112u) << 23u) | (m << 13u));
}""",
    "to_half": """fn to_half(x: f32) -> u32 {
  let b = bitcast<u32>(x); let s = (b >> 16u) & 0x8000u; let a = b & 0x7fffffffu;
  if (a > 0x7f800000u) { return s | 0x7e00u; }
  if (a >= 0x477ff000u) { return s | 0x7c00u; }
  if (a < 0x33000001u) { return s; }
  var drop = 13u; var m = a; var base = 0x38000000u;
  if (a < 0x38800000u) {
    drop = 126u - (a >> 23u); m = (a & 0x7fffffu) | 0x800000u; base = 0u;
  }
  let kept = (m - base) >> drop; let rest = (m - base) & ((1u << drop) - 1u);
  let half = 1u << (drop - 1u);
  return s | (kept + select(0u, 1u, rest > half || (rest == half && (kept & 1u) == 1u)));
}""",
    "of_brain": "fn of_brain(b: u32) -> f32 { return bitcast<f32>(b << 16u); }",
    "to_brain": """fn to_brain(x: f32) -> u32 {
  let b = bitcast<u32>(x);
  if ((b & 0x7fffffffu) > 0x7f800000u) { return (b >> 16u) | 0x40u; }
  return (b + 0x7fffu + ((b >> 16u) & 1u)) >> 16u;
}""",
    "to_odd": """fn to_odd(x: f64) -> f32 {
  let near = f32(x); let back = f64(near); let b = bitcast<u32>(near);
  if (back == x || (b & 0x7f800000u) == 0x7f800000u) { return near; }
  return bitcast<f32>(select(b, b - 1u, abs(back) > abs(x)) | 1u);
}""",
    "is_nan_f32": """fn is_nan_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;
}""",
    "is_nan_f64": """fn is_nan_f64(x: f64) -> bool {
  return (bitcast<u64>(x) & 0x7ffffffffffffffflu) > 0x7ff0000000000000lu;
}""",
    "is_inf_f32": """fn is_inf_f32(x: f32) -> bool {
  return (bitcast<u32>(x) & 0x7fffffffu) == 0x7f800000u;
}""",
    "is_inf_f64": """fn is_inf_f64(x: f64) -> bool {
  return (bitcast<u64>(x) & 0x7ffffffffffffffflu) == 0x7ff0000000000000lu;
}""",
    "negative_f32": "fn negative_f32(x: f32) -> bool { return (bitcast<u32>(x) >> 31u) != 0u; }",
    "negative_f64": "fn negative_f64(x: f64) -> bool { return (bitcast<u64>(x) >> 63u) != 0lu; }",
    "flip_f32": """fn flip_f32(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u);
}""",
    "flip_f64": """fn flip_f64(x: f64) -> f64 {
  return bitcast<f64>(bitcast<u64>(x) ^ 0x8000000000000000lu);
}""",
    "bare_f32": """fn bare_f32(x: f32) -> f32 {
  return bitcast<f32>(bitcast<u32>(x) & 0x7fffffffu);
}""",
    "bare_f64": """fn bare_f64(x: f64) -> f64 {
  return bitcast<f64>(bitcast<u64>(x) & 0x7ffffffffffffffflu);
}""",
    "signed_f32": """fn signed_f32(x: f32, y: f32) -> f32 {
  return bitcast<f32>((bitcast<u32>(x) & 0x7fffffffu) | (bitcast<u32>(y) & 0x80000000u));
}""",
    "signed_f64": """fn signed_f64(x: f64, y: f64) -> f64 {
  return bitcast<f64>((bitcast<u64>(x) & 0x7ffffffffffffffflu)
    | (bitcast<u64>(y) & 0x8000000000000000lu));
}""",
}


def _of_floats(template: str) -> dict[str, str]:
    """Return functions of both kinds of floats; the text has T for the type and L for a literal."""
    made: dict[str, str] = {}
    for kind, literal in (("f32", ""), ("f64", "lf")):
        text = re.sub(r"\bT\b", kind, template)
        text = re.sub(r"_T\b", f"_{kind}", text)
        text = re.sub(r"(\d\.\d+)L\b", rf"\1{literal}", text)
        name = re.search(r"fn (\w+)", text)
        assert name is not None
        made[name[1]] = text
    return made


for _template in (
    # NaN comes through, the first of two; of two zeros either will do.
    """fn more_T(a: T, b: T) -> T {
  if (is_nan_T(a)) { return a; }
  if (is_nan_T(b)) { return b; }
  return select(b, a, a >= b);
}""",
    """fn less_T(a: T, b: T) -> T {
  if (is_nan_T(a)) { return a; }
  if (is_nan_T(b)) { return b; }
  return select(b, a, a <= b);
}""",
    """fn sign_T(x: T) -> T {
  if (is_nan_T(x) || x == 0.0L) { return select(x, 0.0L, x == 0.0L); }
  return select(-1.0L, 1.0L, x > 0.0L);
}""",
    """fn rint_T(x: T) -> T {
  let down = floor(x); let gap = x - down;
  if (is_nan_T(x) || is_inf_T(x) || gap == 0.0L) { return x; }
  let even = down - 2.0L * floor(down / 2.0L) == 0.0L;
  let up = gap > 0.5L || (gap == 0.5L && !even);
  return signed_T(select(down, down + 1.0L, up), x);
}""",
    """fn floor_T(x: T) -> T { return signed_T(floor(x), x); }""",
    """fn ceil_T(x: T) -> T { return signed_T(ceil(x), x); }""",
    """fn trunc_T(x: T) -> T { return signed_T(trunc(x), x); }""",
    # NumPy's divmod, of a remainder that has the sign of the divisor.
    """fn modulo_T(a: T, b: T) -> T {
  let rest = rest_T(a, b);
  if (is_nan_T(rest)) { return rest; }
  if (rest == 0.0L) { return signed_T(rest, b); }
  return select(rest, rest + b, (rest < 0.0L) != (b < 0.0L));
}""",
    """fn floored_T(a: T, b: T) -> T {
  if (b == 0.0L) { return a / b; }
  let rest = rest_T(a, b);
  if (is_nan_T(rest)) { return rest; }
  var whole = quotient_T(a - rest, b);
  if (rest != 0.0L && (rest < 0.0L) != (b < 0.0L)) { whole = whole - 1.0L; }
  if (whole == 0.0L) { return signed_T(whole, a / b); }
  let down = floor(whole);
  return select(down, down + 1.0L, whole - down > 0.5L);
}""",
):
    FUNCTIONS.update(_of_floats(_template))

FUNCTIONS.update(
    {
        # The rest of a division without a rounding: the divisor is doubled while it fits.
        "rest_f32": """fn rest_f32(a: f32, b: f32) -> f32 {
  if (is_nan_f32(a) || is_nan_f32(b) || is_inf_f32(a) || b == 0.0) {
    return bitcast<f32>(0x7fc00000u);
  }
  var left = bare_f32(a); let by = bare_f32(b);
  if (is_inf_f32(b) || left < by) { return a; }
  let most = i32(bitcast<u32>(left) >> 23u);
  let wide = select(bitcast<u32>(by) & 0x7fffffu, (bitcast<u32>(by) & 0x7fffffu) | 0x800000u,
    (bitcast<u32>(by) >> 23u) != 0u);
  var kept = select(bitcast<u32>(left) & 0x7fffffu,
    (bitcast<u32>(left) & 0x7fffffu) | 0x800000u, most != 0);
  var e = max(most, 1); let least = max(i32(bitcast<u32>(by) >> 23u), 1);
  kept = kept % wide;
  while (e > least && kept != 0u) { kept = (kept << 1u) % wide; e = e - 1; }
  if (kept == 0u) { return signed_f32(0.0, a); }
  while (e > 1 && (kept & 0x800000u) == 0u) { kept = kept << 1u; e = e - 1; }
  let bits = select(kept, (kept & 0x7fffffu) | (u32(e) << 23u), (kept & 0x800000u) != 0u);
  return signed_f32(bitcast<f32>(bits), a);
}""",
        "rest_f64": """fn rest_f64(a: f64, b: f64) -> f64 {
  if (is_nan_f64(a) || is_nan_f64(b) || is_inf_f64(a) || b == 0.0lf) {
    return bitcast<f64>(0x7ff8000000000000lu);
  }
  let x = bitcast<u64>(bare_f64(a)); let y = bitcast<u64>(bare_f64(b));
  if (is_inf_f64(b) || x < y) { return a; }
  let point = 0x10000000000000lu; let below = 0xffffffffffffflu;
  let most = i32(u32(x >> 52u)); let least = max(i32(u32(y >> 52u)), 1);
  let wide = select(y & below, (y & below) | point, (y >> 52u) != 0lu);
  var kept = select(x & below, (x & below) | point, most != 0);
  var e = max(most, 1);
  kept = kept % wide;
  while (e > least && kept != 0lu) { kept = (kept << 1u) % wide; e = e - 1; }
  if (kept == 0lu) { return signed_f64(0.0lf, a); }
  while (e > 1 && (kept & point) == 0lu) { kept = kept << 1u; e = e - 1; }
  let bits = select(kept, (kept & below) | (u64(e) << 52u), (kept & point) != 0lu);
  return signed_f64(bitcast<f64>(bits), a);
}""",
    }
)

# WGSL lets a card divide by a float32 beyond 2**126 as it likes, and some then give 0 or NaN.
FUNCTIONS["quotient_f32"] = """fn quotient_f32(a: f32, b: f32) -> f32 {
  let s = select(1.0, 0.0625, abs(b) > 4e37);
  return (a * s) / (b * s);
}"""
for _kind in ("f16", "f64"):
    FUNCTIONS[f"quotient_{_kind}"] = (
        f"fn quotient_{_kind}(a: {_kind}, b: {_kind}) -> {_kind} {{ return a / b; }}"
    )

# Of whole numbers: division rounds down, and by zero gives 0, as NumPy's does. What is left is
# computed from the quotient, for Vulkan leaves `%` of negative numbers to the driver.
for _kind, _zero in (("i32", "0"), ("u32", "0u"), ("i64", "0li"), ("u64", "0lu")):
    _one = _zero.replace("0", "1")
    _signed = _kind[0] == "i"
    _fix = f"select(q, q - {_one}, (a != q * b) && ((a < {_zero}) != (b < {_zero})))"
    _least = "q" if not _signed else _fix
    _edge = f"if (b == {_zero} - {_one}) {{ return {_zero} - a; }}" if _signed else ""
    _none = f"if (b == {_zero} - {_one}) {{ return {_zero}; }}" if _signed else ""
    _turn = (
        "r"
        if not _signed
        else f"select(r, r + b, r != {_zero} && ((r < {_zero}) != (b < {_zero})))"
    )
    FUNCTIONS[f"floored_{_kind}"] = (
        f"fn floored_{_kind}(a: {_kind}, b: {_kind}) -> {_kind} {{\n"
        f"  if (b == {_zero}) {{ return {_zero}; }}\n  {_edge}\n"
        f"  let q = a / b; return {_least};\n}}"
    )
    FUNCTIONS[f"modulo_{_kind}"] = (
        f"fn modulo_{_kind}(a: {_kind}, b: {_kind}) -> {_kind} {{\n"
        f"  if (b == {_zero}) {{ return {_zero}; }}\n  {_none}\n"
        f"  let r = a - a / b * b; return {_turn};\n}}"
    )
    FUNCTIONS[f"power_{_kind}"] = (
        f"fn power_{_kind}(a: {_kind}, b: {_kind}) -> {_kind} {{\n"
        f"  var base = a; var left = b; var made = {_one};\n"
        f"  while (left > {_zero}) {{\n"
        f"    if ((left & {_one}) != {_zero}) {{ made = made * base; }}\n"
        f"    base = base * base; left = left >> 1u;\n  }}\n  return made;\n}}"
    )


def needed(text: str) -> str:
    """Return the functions that a text calls, and those that they call."""
    found: dict[str, str] = {}
    left = [text]
    while left:
        for name in re.findall(r"\b(\w+)\(", left.pop()):
            if name in FUNCTIONS and name not in found:
                found[name] = FUNCTIONS[name]
                left.append(FUNCTIONS[name])
    return "\n".join(found.values())
