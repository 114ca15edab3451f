"""An engine that TensorRT has loaded onto this card, and what executes it."""

from typing import Any

from cupy.cuda import runtime

from accel_lab.backends.engine_builder import (
    extents,
    failure,
    listening,
    logger,
    named,
    package,
)
from accel_lab.libraries.tensorrt.errors import EngineError, UnsupportedCard
from accel_lab.libraries.tensorrt.messages import CAPABILITIES, EngineFacts, Profile, Tensor


class Opened:
    """An engine on this card; of calls that change what it is set to, one is made at a time.

    Attributes:
        context: TensorRT's execution context, which is given its memory by who executes.
        cache: the kernels that TensorRT compiles for it.
        nbytes: the size of its weights.

    Parameters:
        cached: what `cache` began with the last time.

    Raises:
        EngineError: TensorRT does not load it.
        UnsupportedCard: there are no engines for this card.
    """

    def __init__(self, plan: bytes, cached: bytes) -> None:
        trt = package()
        require_card(trt)
        with listening() as said:
            self.runtime = trt.Runtime(logger())
            self.engine = self.runtime.deserialize_cuda_engine(plan)
            if self.engine is None:
                raise failure("TensorRT does not load the engine", said)
            config = self.engine.create_runtime_config()
            strategy = trt.ExecutionContextAllocationStrategy.USER_MANAGED
            config.set_execution_context_allocation_strategy(strategy)
            self.cache = config.create_runtime_cache()
            if cached:
                self.cache.deserialize(cached)  # False where it is another card's: it stays empty
            config.set_runtime_cache(self.cache)
            self.context = self.engine.create_execution_context(config)
            if self.context is None:
                raise failure("TensorRT makes no execution context", said)
        self.nbytes = max(int(self.engine.get_engine_stat(trt.EngineStat.TOTAL_WEIGHTS_SIZE)), 0)

    def close(self) -> None:
        """Have TensorRT free it: each thing before what it is made of."""
        self.context = self.cache = self.engine = self.runtime = None

    def facts(self, nbytes: int) -> EngineFacts:
        """Return what is known of it, for a plan of so many bytes.

        Raises:
            EngineError: an input or an output is of a dtype that we lack, or a shape.
        """
        trt, engine = package(), self.engine
        inputs: list[Tensor] = []
        outputs: list[Tensor] = []
        for i in range(engine.num_io_tensors):
            name = engine.get_tensor_name(i)
            if engine.is_shape_inference_io(name):
                text = f"the engine's {name} is a shape, for which there is no buffer"
                raise EngineError(text, library="tensorrt", name="SHAPE_INPUT")
            dtype, shape = engine.get_tensor_dtype(name), engine.get_tensor_shape(name)
            is_input = engine.get_tensor_mode(name) == trt.TensorIOMode.INPUT
            tensor = Tensor(name, named(dtype, name), extents(shape))
            (inputs if is_input else outputs).append(tensor)
        varying = [one.name for one in inputs if None in one.shape]
        profiles = tuple(
            self._profile(varying, at) for at in range(engine.num_optimization_profiles)
        )
        return EngineFacts(
            tuple(inputs),
            tuple(outputs),
            profiles if varying else (),
            engine.num_layers,
            nbytes,
            (),
            trt.__version__,
        )

    def _profile(self, names: list[str], at: int) -> Profile:
        made = {}
        for name in names:
            least, usual, most = self.engine.get_tensor_profile_shape(name, at)
            made[name] = tuple(least), tuple(usual), tuple(most)
        return made

    def set_shapes(
        self, shapes: dict[str, tuple[int, ...]], profile: int, stream: int
    ) -> dict[str, tuple[int, ...]]:
        """Choose a profile and the shapes of the inputs; return those of everything.

        Raises:
            EngineError: it was not built for these.
        """
        with listening() as said:
            context = self.context
            is_set = context.active_optimization_profile == profile
            if not is_set and not context.set_optimization_profile_async(profile, stream):
                raise failure(f"TensorRT takes no profile {profile}", said)
            for name, shape in shapes.items():
                if not context.set_input_shape(name, shape):
                    raise failure(f"TensorRT does not take {name} of shape {list(shape)}", said)
            try:
                lacking = context.infer_shapes()
            except RuntimeError as error:
                raise failure(f"TensorRT knows no shapes ({error})", said) from error
            if lacking:
                raise failure(f"TensorRT lacks the shape of {', '.join(lacking)}", said)
            count = self.engine.num_io_tensors
            names = [self.engine.get_tensor_name(i) for i in range(count)]
            return {name: tuple(context.get_tensor_shape(name)) for name in names}


def require_card(trt: Any) -> None:
    """Refuse a card that TensorRT-RTX has no engines for.

    Raises:
        UnsupportedCard: it is one.
    """
    found = runtime.getDeviceProperties(runtime.getDevice())
    major, minor = found["major"], found["minor"]
    if f"SM{major}{minor}" in trt.ComputeCapability.__members__:
        return
    capability = major + minor / 10
    raise UnsupportedCard(
        f"TensorRT-RTX {trt.__version__} executes nothing on a card of compute capability "
        f"{capability}",
        library="tensorrt",
        name="UNSUPPORTED_CC",
        capability=capability,
        supported=CAPABILITIES,
    )
