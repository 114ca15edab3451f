"""One file per library, with what is measured of it as `CASES`; no list names it."""
