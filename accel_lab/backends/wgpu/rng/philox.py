"""Philox4x32-10 in WGSL, in the word order of `rng`."""

import math

from accel_lab.backends.wgpu.kernels import fine
from accel_lab.backends.wgpu.kernels.functions import FUNCTIONS

_SINE, _COSINE = fine.SIN, fine.COS

FUNCTIONS.update(
    {
        "block": """fn block(index: u64) -> vec4<u32> {
  let within = (stream() << 16u) | (index & 0xfffflu);
  var c0 = u32((index >> 16u) & 0xfffffffflu); var c1 = u32(index >> 48u);
  var c2 = u32(within & 0xfffffffflu); var c3 = u32(within >> 32u);
  var k0 = u32(seed() & 0xfffffffflu); var k1 = u32(seed() >> 32u);
  for (var round = 0u; round < 10u; round = round + 1u) {
    let left = u64(c0) * 0xd2511f53lu; let right = u64(c2) * 0xcd9e8d57lu;
    let a0 = u32(right >> 32u) ^ c1 ^ k0; let a2 = u32(left >> 32u) ^ c3 ^ k1;
    c1 = u32(right & 0xfffffffflu); c3 = u32(left & 0xfffffffflu);
    c0 = a0; c2 = a2;
    k0 = k0 + 0x9e3779b9u; k1 = k1 + 0xbb67ae85u;
  }
  return vec4<u32>(c0, c1, c2, c3);
}""",
        "high": """fn high(a: u64, b: u64) -> u64 {
  let m = 0xfffffffflu;
  let low = (a & m) * (b & m);
  let middle = (a >> 32u) * (b & m) + (low >> 32u);
  let other = (a & m) * (b >> 32u) + (middle & m);
  return (a >> 32u) * (b >> 32u) + (middle >> 32u) + (other >> 32u);
}""",
        # What is left of an angle after whole quarters of a turn is exact.
        "turn_fine": f"""fn turn_fine(turn: f64) -> vec2<f64> {{
  let q = floor(4.0lf * turn + 0.5lf);
  let r = (turn - q * 0.25lf) * {2 * math.pi!r}lf; let t = r * r;
  let s = r + r * t * {_SINE}; let c = {_COSINE};
  let at = q - 4.0lf * floor(q * 0.25lf);
  if (at == 0.0lf) {{ return vec2<f64>(s, c); }}
  if (at == 1.0lf) {{ return vec2<f64>(c, -s); }}
  if (at == 2.0lf) {{ return vec2<f64>(-s, -c); }}
  return vec2<f64>(-c, s);
}}""",
    }
)


def words_text(each: int, element: str = "i") -> str:
    """Return what makes the words of an element: `w0` and so on, as many as it takes.

    They may be of two blocks.
    """
    lines = [
        f"let from_word = offset() + u64({element}) * {each}lu;",
        "let skipped = u32(from_word & 3lu);",
        "let b0 = block(from_word >> 2u);",
    ]
    if each > 1:
        lines.append("let b1 = block((from_word >> 2u) + 1lu);")
        lines += [
            f"let w{n} = select(b0[(skipped + {n}u) & 3u], b1[(skipped + {n}u) & 3u], "
            f"skipped + {n}u > 3u);"
            for n in range(each)
        ]
    else:
        lines.append("let w0 = b0[skipped];")
    return "\n".join(lines)
