"""What loading a model fails with."""

from accel_lab.errors import AccelError


class ModelError(AccelError):
    """A file is no ONNX model, or cannot be read; the text says why."""

    remedy = (
        'Do what the text says. Reading needs the package `onnx`: pip install "accel-lab[onnx]".'
    )


class UnsupportedModel(ModelError, fields=("node", "operator", "missing")):
    """A model asks for what accel_lab does not have; nothing was sent.

    Attributes:
        node: the first node that asks for it, by its name or its result.
        operator: its operator, with the domain and the version of the operator set.
        missing: all that is missing, one text for each.
    """

    remedy = "See `node`, `operator` and `missing`; export the model without them."
    node: str
    operator: str
    missing: tuple[str, ...] = ()
