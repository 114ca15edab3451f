"""Products of matrices: a work group makes a tile of 64 by 64, each invocation 4 by 4 of it."""

from typing import Any

from accel_lab.backends.wgpu.kernels.job import MOST_GROUPS, Job
from accel_lab.backends.wgpu.kernels.target import Target
from accel_lab.backends.wgpu.kernels.types import cast, type_of
from accel_lab.errors import InvalidArgument

TILE, SIDE, EACH, DEEP = 64, 16, 4, 16
MOST_TERMS = 32_768
"""How many terms a kernel sums: a processor's adapter ends loops after 65 535 rounds."""
_SUMS = {"float16": "float32", "bfloat16": "float32", "bool": "int32"}
"""In what products are summed. A driver lost some bool of a work group's memory."""


def multiply(
    device: Target,
    a: Any,
    b: Any,
    out: Any,
    alpha: Any = 1,
    c: Any = None,
    beta: Any = 0,
) -> None:
    """Write alpha a @ b + beta c for matrices whose leading axes broadcast to those of `out`.

    A factor is a number or an array of one element. Where it is 0, what it scales does not count.

    Raises:
        InvalidArgument: there are more products than work groups in a dimension.
    """
    if not out.size:
        return
    batch, (rows, columns), terms = out.shape[:-2], out.shape[-2:], a.shape[-1]
    a = a.broadcast_to((*batch, rows, terms))
    b = b.broadcast_to((*batch, terms, columns))
    count = out.size // (rows * columns)
    if count > MOST_GROUPS:
        text = f"wgpu multiplies at most {MOST_GROUPS} matrices at once, not {count}"
        raise InvalidArgument(text)
    dtype = _SUMS.get(out.name, out.name)
    sums = device.empty(out.shape, dtype)
    if not terms:
        nothing = Job(device)
        nothing.array("y", sums)
        nothing.run(f"set_y(i, {_zero(dtype)});", out.size)
    for first in range(0, terms, MOST_TERMS):
        some = slice(first, min(first + MOST_TERMS, terms))
        _add_product(device, a[..., some], b[..., some, :], sums, dtype, is_first=first == 0)
    combine(device, sums, out, alpha, c, beta)


def combine(device: Target, x: Any, out: Any, alpha: Any = 1, c: Any = None, beta: Any = 0) -> None:
    """Write alpha x + beta c; what a 0 scales does not count.

    All is computed in the dtype of `x`.
    """
    dtype, job = x.name, Job(device)
    kind = type_of(dtype)
    job.array("x", x)
    job.array("y", out)
    text = _scaled(job, "alpha", alpha, cast("x(i)", x.name, dtype), dtype)
    if c is not None:
        job.array("c", c.broadcast_to(out.shape))
        term = _scaled(job, "beta", beta, cast("c(i)", c.name, dtype), dtype)
        text = f"({text} || {term})" if kind.kind == "b" else f"({text} + {term})"
    made = text if kind.kind == "f" else kind.rounded.format(text)
    job.run(f"set_y(i, {cast(made, dtype, out.name)});", out.size)


def _scaled(job: Job, name: str, factor: Any, text: str, dtype: str) -> str:
    """Return a factor times a value, nothing where the factor is 0."""
    kind = type_of(dtype)
    if hasattr(factor, "block"):
        job.array(name, factor.reshape((1,)))
        by = cast(f"{name}(0u)", factor.name, dtype)
    elif factor == 1:
        return text
    else:
        job.number(name, factor, dtype)
        by = f"{name}()"
    if kind.kind == "b":
        return f"({by} && {text})"
    zero = f"{kind.value}(0)"
    return f"select({by} * {text}, {zero}, {by} == {zero})"


def _add_product(device: Target, a: Any, b: Any, sums: Any, dtype: str, *, is_first: bool) -> None:
    """Write a product to `sums`, or add it."""
    rows, columns = sums.shape[-2:]
    job = Job(device)
    for name, x in (("a", a), ("b", b), ("y", sums)):
        job.matrices(name, x)
    for name, number in (("rows", rows), ("columns", columns), ("terms", a.shape[-1])):
        job.count(name, number)
    groups = -(-columns // TILE), -(-rows // TILE), sums.size // (rows * columns)
    job.run_groups(_main(dtype, a.name, b.name, is_first=is_first), 0, groups)


def _zero(dtype: str) -> str:
    return f"{type_of(dtype).value}(0)"


def _main(dtype: str, left: str, right: str, *, is_first: bool) -> str:
    kind = type_of(dtype)
    zero = _zero(dtype)
    pairs = [(r, c) for r in range(EACH) for c in range(EACH)]
    of_a = cast("a(az, row + ra, t + ka)", left, dtype)
    of_b = cast("b(bz, t + kb, column + cb)", right, dtype)
    fill = [
        f"""
    {{
      let e = l + {SIDE * SIDE * q}u;
      let ka = e % {DEEP}u; let ra = e / {DEEP}u;
      var va = {zero};
      if (row + ra < rows() && t + ka < terms()) {{ va = {of_a}; }}
      of_a[ka * {TILE}u + ra] = va;
      let cb = e % {TILE}u; let kb = e / {TILE}u;
      var vb = {zero};
      if (column + cb < columns() && t + kb < terms()) {{ vb = {of_b}; }}
      of_b[kb * {TILE}u + cb] = vb;
    }}"""
        for q in range(TILE * DEEP // SIDE**2)
    ]
    take = [f"let a{n} = of_a[k * {TILE}u + lr + {n}u];" for n in range(EACH)]
    take += [f"let b{n} = of_b[k * {TILE}u + lc + {n}u];" for n in range(EACH)]
    sums = [f"s{r}{c} = s{r}{c} + (a{r} * b{c});" for r, c in pairs]
    put = []
    for r, c in pairs:
        where = f"yz, row + lr + {r}u, column + lc + {c}u"
        value = f"s{r}{c}" if is_first else f"y({where}) + s{r}{c}"
        if kind.kind != "f":
            value = kind.rounded.format(f"({value})")
        inside = f"row + lr + {r}u < rows() && column + lc + {c}u < columns()"
        put.append(f"if ({inside}) {{ set_y({where}, {value}); }}")
    newline = "\n      "
    return f"""
var<workgroup> of_a: array<{kind.value}, {TILE * DEEP}>;
var<workgroup> of_b: array<{kind.value}, {TILE * DEEP}>;
@compute @workgroup_size({SIDE * SIDE})
fn main(@builtin(workgroup_id) w: vec3<u32>, @builtin(local_invocation_index) l: u32) {{
  let row = w.y * {TILE}u; let column = w.x * {TILE}u;
  let lr = (l / {SIDE}u) * {EACH}u; let lc = (l % {SIDE}u) * {EACH}u;
  let az = a_base(w.z); let bz = b_base(w.z); let yz = y_base(w.z);
  {newline.join(f"var s{r}{c} = {zero};" for r, c in pairs)}
  for (var t = 0u; t < terms(); t = t + {DEEP}u) {{
    {"".join(fill)}
    workgroupBarrier();
    for (var k = 0u; k < {DEEP}u; k = k + 1u) {{
      {newline.join(take)}
      {newline.join(sums)}
    }}
    workgroupBarrier();
  }}
  {newline.join(put)}
}}
"""
