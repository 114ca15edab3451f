"""Takes out of a text what nobody else should read, before it leaves this machine."""

import getpass
import re
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

GONE = "[left-out]"
_OWN_WORD = r"token(?!s(?:$|[\W\d_])|i[sz])"
"""The word for a secret; tokens, tokenizers and what is tokenized have to do with a text."""
_NAME = (
    rf"(?i)\b([\w.-]*(?:api[_-]?key|passw(?:or)?d|passwd|pwd|secret|{_OWN_WORD}|credential|"
    r"access[_-]?key)[\w.-]*[\"']?\s*(?:=|:)\s*)"
)
_NAMED = _NAME + r"(\"[^\"]*\"|'[^']*'|[^\s,;&)\"']+)"
_QUOTED = _NAME + r"(\"[^\"]+\"|'[^']+')"
_KEY = r"(?<![A-Za-z0-9])(?=[A-Za-z0-9]*[0-9])(?=[A-Za-z0-9]*[A-Za-z])[A-Za-z0-9]{20,}"
"""So many letters and digits in a row are no word of a text."""
_OF_TEXT = r"(?i)\b([\w.-]*token(?:s|i[sz])[\w.-]*[\"']?\s*(?:=|:)\s*[\[({]*[\"']?)" + _KEY
_KNOWN = (
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",  # OpenAI, Stripe and alike
    r"\bgh[pousr]_[A-Za-z0-9]{20,}",
    r"\bgithub_pat_\w{20,}",
    r"\bhf_[A-Za-z0-9]{16,}",
    r"\bglpat-[\w-]{16,}",
    r"\bxox[abprs]-[\w-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON Web Tokens
    r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
)
_BEARER = r"(?i)\b((?:bearer|basic)\s+)[\w+/=.~-]{8,}"
_IN_URL = r"(\b[a-z][a-z0-9+.-]*://)[^\s/@]+@"
_SECRET_NAME = re.compile(
    r"(?i)(?:^|[\W_])(?:api[_-]?key|passw(?:or)?d|passwd|pwd|secret|token|credentials?|"
    r"access[_-]?key)(?:$|[\W_])"
)
_LEAST = 3
"""A name of a user or a machine that is shorter stands in too many words."""


def is_secret_name(name: str) -> bool:
    """Whether a name says that it stands for a secret, as `api_key`, and not as `tokens`."""
    return _SECRET_NAME.search(name) is not None


def names_a_secret(name: str, text: str) -> bool:
    """Whether a name says of a text that it is a secret.

    `token` does of any; `tokens` and `tokenizer`, as `n_tokens`, of one that looks like a key.
    """
    is_loose = "token" in name.lower() and re.search(_KEY, text) is not None
    return is_loose or is_secret_name(name)


def without_keys(text: str) -> str:
    """Leave secrets out of a program's text: known forms, and what secret names are given.

    It stays a program: of what follows a name only a text in quotes goes.
    """
    return re.sub(_QUOTED, rf"\1'{GONE}'", _without_forms(text))


def _without_forms(text: str) -> str:
    """Leave out what is a secret by its form."""
    for pattern in _KNOWN:
        text = re.sub(pattern, GONE, text)
    text = re.sub(_IN_URL, rf"\1{GONE}@", text)
    text = re.sub(_BEARER, rf"\1{GONE}", text)
    return re.sub(_OF_TEXT, rf"\1{GONE}", text)


def scrubber() -> Callable[[str], str]:
    """Return what leaves secrets out of a text, and the names of the user and of the machine.

    Keys are known by their names (`password=…`), by the forms that the large services give them,
    and in addresses. A secret that looks like any other word cannot be known.
    """
    names: dict[str, str] = {str(Path.home()): "~"}
    with suppress(KeyError, OSError):
        names[getpass.getuser()] = "[user]"
    names[socket.gethostname()] = "[machine]"
    own = [(name, to) for name, to in names.items() if len(name) >= _LEAST and name != "root"]

    def scrub(text: str) -> str:
        text = re.sub(_NAMED, rf"\1{GONE}", _without_forms(text))
        for name, to in own:
            text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", to, text)
        return text

    return scrub
