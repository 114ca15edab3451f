"""CUDA features that the host lacks, by the names that sources use for them."""

import re

from accel_lab.libraries.jit.comments import without_comments

_LACKING = (
    (r"(?:nv)?wmma\b|#\s*include\s*<mma\.h>", "tensor cores (wmma)"),
    (r"\basm\s*(?:volatile\s*)?\(", "inline PTX (asm)"),
    (r"<<<", "launches from C++ (<<<…>>>); the notebook launches a kernel by calling it"),
    (r"\bcuda(?:Malloc|Free|Memcpy|Memset|Stream|Event|Device|GetLast)\w*", "the CUDA runtime"),
    (r"\btex[123]D\w*|\bcudaTextureObject_t\b|\bsurf[123]D\w*|\btexture\s*<", "textures"),
    (r"\bcurand\w*", "cuRAND; the rng library makes random numbers"),
    (r"#\s*include\s*<(?:cub|thrust)/[^>]*>", "CUB and Thrust"),
    (r"#\s*include\s*<cuda/[^>]*>|\bcuda::", "libcu++ (<cuda/…>)"),
    (r"#\s*include\s*<cutlass/[^>]*>|\bcutlass::|\bcute::", "CUTLASS"),
    (
        r"#\s*include\s*[<\"]accel_lab/(?:mbarrier|tma|wgmma|tcgen05)\.h[>\"]",
        "TMA and its barriers, wgmma and tcgen05 (<accel_lab/…>)",
    ),
    (r"#\s*include\s*<cuda_fp8\.h>|\b__nv_fp8", "fp8 (<cuda_fp8.h>)"),
    (
        r"\b__pipeline_\w+|\b__cvta_\w+|\b__cluster\w+|\bcluster_group\b|\bthis_cluster\b",
        "asynchronous copies and clusters",
    ),
    (r"\b__(?:shfl|ballot|any|all)(?:_up|_down|_xor)?\s*\(", "warp functions without _sync"),
    (r"\b__v\w+[24]\s*\(", "SIMD intrinsics of packed bytes"),
)
_PATTERNS = [(re.compile(pattern), name) for pattern, name in _LACKING]


def lacking(source: str) -> list[str]:
    """Return what of a source the host has not, each with its line: "textures (line 3)"."""
    code = without_comments(source)
    named = []
    for pattern, name in _PATTERNS:
        found = pattern.search(code)
        if found is not None:
            line = code.count("\n", 0, found.start()) + 1
            named.append(f"{name} (line {line})")
    return named
