"""Cells of a notebook, run in a real kernel as `jupyter execute` does, and what each left."""

from typing import Any

import nbformat
from nbclient import NotebookClient


def outputs_of(*sources: str) -> list[list[Any]]:
    """Run cells in one kernel, and return the outputs of each."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    book = nbformat.v4.new_notebook(cells=cells)
    NotebookClient(book, timeout=120).execute()
    return [cell.outputs for cell in book.cells]
