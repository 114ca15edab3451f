"""What building, loading and executing an engine fails with."""

from accel_lab.errors import Directive, LibraryError

EVERYWHERE = "run the ONNX model with accel_lab.onnx.load, which every backend has"


class EngineError(LibraryError, fields=("node", "operator")):
    """TensorRT cannot build, load or execute an engine; the text is TensorRT's.

    Attributes:
        node: the node of the ONNX model that it does not take; empty where it is no node.
        operator: the operator of that node.
    """

    directive = Directive.RESUME
    remedy = "Change what the text names, or run the model with accel_lab.onnx.load."
    node: str = ""
    operator: str = ""


class UnsupportedCard(EngineError, fields=("capability", "supported")):
    """TensorRT-RTX has no engines for cards of this compute capability.

    Attributes:
        capability: that of the card, as 9.0.
        supported: those that it has engines for.
    """

    remedy = "Run the model with accel_lab.onnx.load, which every card can, or use another card."
    capability: float
    supported: tuple[float, ...] = ()
