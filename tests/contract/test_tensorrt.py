"""The contract of `libraries.tensorrt`: what an engine takes and makes, and what is refused."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from accel_lab import onnx, tensorrt
from accel_lab.actor.reply import Reply
from accel_lab.backends import engine_builder
from accel_lab.compute.actors.fault import Inject
from accel_lab.compute.device import Device
from accel_lab.errors import ContextLost, InvalidArgument, UnsupportedDtype
from accel_lab.libraries.tensorrt.messages import CAPABILITIES, FLAGS, REFUSED, Build, Execute
from accel_lab.system import System
from tests.conftest import require
from tests.contract.onnx_models import FLOAT, Nodes, model, onnxruntime, value
from tests.contract.samples import refused

WAIT_S = 120.0
FLOAT16, BFLOAT16, DOUBLE, INT64 = 10, 16, 11, 7
PROFILE = {"x": ((1, 3, 8, 8), (2, 3, 8, 8), (4, 3, 8, 8))}
FILE = b"these are not the bytes of a model"


@pytest.fixture(scope="module")
def _package() -> None:
    """Require TensorRT-RTX and onnx: a test that builds asks for this."""
    require("tensorrt")
    require("onnx")


building = pytest.mark.usefixtures("_package")


def network(n: int | str = "n", code: int = FLOAT, dtype: Any = "float32") -> Any:
    """Return a model: a convolution, a mean, a product, a softmax."""
    rng = np.random.default_rng(1)
    weights = {
        "w": (rng.standard_normal((8, 3, 3, 3)) * 0.3).astype(dtype),
        "v": (rng.standard_normal((8, 5)) * 0.3).astype(dtype),
    }
    nodes: Nodes = [
        ("Conv", ["x", "w"], ["a"], {"pads": [1, 1, 1, 1]}),
        ("Relu", ["a"], ["r"], {}),
        ("GlobalAveragePool", ["r"], ["g"], {}),
        ("Flatten", ["g"], ["f"], {}),
        ("MatMul", ["f", "v"], ["m"], {}),
        ("Softmax", ["m"], ["y"], {}),
    ]
    return model(nodes, [value("x", code, [n, 3, 8, 8])], [value("y", code, [n, 5])], weights)


def product(weights: Any) -> Any:
    """Return a model of one product."""
    ports = [value("x", FLOAT, [16, len(weights)])], [value("y", FLOAT, [16, weights.shape[1]])]
    return model([("MatMul", ["x", "w"], ["y"], {})], *ports, {"w": weights}, version=19)


def built(device: Device, proto: Any, **options: Any) -> tensorrt.Engine:
    return tensorrt.build(device, proto, **options).result(WAIT_S)


@building
@pytest.mark.parametrize(
    ("code", "dtype", "made"),
    [
        (FLOAT, "float32", "float32"),
        (FLOAT16, "float16", "float16"),
        (BFLOAT16, ml_dtypes.bfloat16, "bfloat16"),
        (DOUBLE, "float64", "float32"),
    ],
)
def test_an_engine_says_what_it_takes_and_makes(
    device: Device, code: int, dtype: Any, made: str
) -> None:
    facts = built(device, network(2, code, dtype)).facts()
    assert facts.inputs == (tensorrt.Tensor("x", made, (2, 3, 8, 8)),)
    assert facts.outputs == (tensorrt.Tensor("y", made, (2, 5)),)
    assert facts.profiles == ()
    assert facts.layers >= 5
    assert facts.version.startswith("1.")


@building
def test_extents_that_vary_have_profiles(device: Device) -> None:
    one = {"x": ((1, 3, 8, 8),) * 3}
    engine = built(device, network(), profiles=[one, {"x": [list(s) for s in PROFILE["x"]]}])
    assert engine.inputs["x"].shape == (None, 3, 8, 8)
    assert engine.outputs["y"].shape == (None, 5)
    assert engine.facts().profiles == (one, PROFILE)
    assert repr(engine).endswith("(x: float32[?, 3, 8, 8]) -> (y: float32[?, 5])>")
    for profile, n in ((0, 2), (1, 5)):
        with pytest.raises(InvalidArgument, match=rf"was built for .*, not float32\[{n}, 3, 8, 8"):
            engine(np.zeros((n, 3, 8, 8), "float32"), profile=profile)
    with pytest.raises(InvalidArgument, match="profile is 2; the engine has those from 0 to 1"):
        engine(np.zeros((1, 3, 8, 8), "float32"), profile=2)


@building
def test_a_plan_is_the_same_each_time_and_can_be_kept(device: Device, tmp_path: Path) -> None:
    proto = network(2)
    (tmp_path / "network.onnx").write_bytes(proto.SerializeToString())
    engine = built(device, tmp_path / "network.onnx")
    plan = engine.plan().get().tobytes()
    assert len(plan) == engine.facts().nbytes > 10_000
    engine.save(tmp_path / "network.engine")
    assert (tmp_path / "network.engine").read_bytes() == plan
    again = built(device, proto.SerializeToString())
    assert tensorrt.serialize(again.handle).get().tobytes() == plan
    other = built(device, network(4))
    assert other.plan().get().tobytes() != plan


@building
@pytest.mark.parametrize("small", ["int8", "float8"])
def test_weights_of_8_bits_take_a_quarter(device: Device, small: str) -> None:
    """So TensorRT has kept what stands before the product as 8 bits, and not as float32."""
    weights = np.random.default_rng(0).standard_normal((1024, 1024)).astype("float32")
    proto = product(weights)
    if small == "int8":
        samples = [{"x": np.ones((16, 1024), "float32")}]
        quantized = onnx.quantize(proto, device, samples, "minmax")
    else:
        kind = ml_dtypes.float8_e4m3fn
        zero, scale = np.zeros((), kind), np.float32(0.02)
        constants = {"q": (weights / scale).astype(kind), "scale": scale, "zero": zero}
        nodes: Nodes = [
            ("QuantizeLinear", ["x", "scale", "zero"], ["s"], {}),
            ("DequantizeLinear", ["s", "scale", "zero"], ["d"], {}),
            ("DequantizeLinear", ["q", "scale", "zero"], ["w"], {}),
            ("MatMul", ["d", "w"], ["y"], {}),
        ]
        ports = [value("x", FLOAT, [16, 1024])], [value("y", FLOAT, [16, 1024])]
        quantized = model(nodes, *ports, constants, version=19)
    whole, less = (built(device, one).facts().nbytes for one in (proto, quantized))
    assert whole - less > 0.6 * weights.nbytes


@building
def test_tf32_is_asked_for(device: Device) -> None:
    plans = [
        built(device, network(2), options=options).plan().get().tobytes()
        for options in ((), "tf32", ("tf32", "strict_nans"))
    ]
    assert plans[0] != plans[1]


@building
def test_an_engine_is_for_some_cards(device: Device) -> None:
    plans = {
        capability: built(device, network(2), capabilities=[capability]).plan().get().tobytes()
        for capability in (8.6, 12.0)
    }
    assert plans[8.6] != plans[12.0]


@building
def test_what_is_refused_has_no_effect_in_tensorrt_or_fails_there() -> None:
    """The texts of refusals say so; here TensorRT is asked itself."""
    trt = engine_builder.package()
    assert {float(name[2:]) / 10 for name in trt.ComputeCapability.__members__ if "SM" in name} == {
        *CAPABILITIES
    }
    assert all(hasattr(trt.BuilderFlag, flag) for flag in FLAGS.values())

    def sparse(config: Any) -> None:
        config.set_flag(trt.BuilderFlag.SPARSE_WEIGHTS)

    def dla(config: Any) -> None:
        config.default_device_type = trt.DeviceType.DLA
        config.DLA_core = 0

    def tactics(config: Any) -> None:
        config.set_tactic_sources(0)

    def flag(name: str) -> Any:
        return lambda config: config.set_flag(getattr(trt.BuilderFlag, name))

    weights = np.random.default_rng(0).standard_normal((64, 64)).astype("float32")
    weights[::4] = weights[1::4] = 0  # of each four the half, so that they could be sparse
    plain = by_hand(trt, product(weights), lambda _: None)
    assert plain is not None
    for change in (sparse, dla, tactics):
        assert by_hand(trt, product(weights), change) == plain
    for name in ("REFIT", "STRIP_PLAN", "VERSION_COMPATIBLE"):
        assert by_hand(trt, product(weights), flag(name)) is None


def by_hand(trt: Any, proto: Any, change: Any) -> bytes | None:
    """Return what TensorRT builds without us."""
    with engine_builder.listening():
        builder = trt.Builder(engine_builder.logger())
        network = builder.create_network()
        assert trt.OnnxParser(network, engine_builder.logger()).parse(proto.SerializeToString())
        config = builder.create_builder_config()
        change(config)
        plan = builder.build_serialized_network(network, config)
        return None if plan is None else bytes(plan)


@building
def test_a_model_that_tensorrt_does_not_take_names_its_node(device: Device) -> None:
    proto = network(2)
    proto.graph.node[1].op_type, proto.graph.node[1].name = "NonZero", "the second"
    with pytest.raises(tensorrt.EngineError, match=r"node the second \(NonZero\)") as caught:
        built(device, proto)
    assert (caught.value.node, caught.value.operator) == ("the second", "NonZero")
    assert built(device, network(2)).facts().layers  # the actor is well
    with pytest.raises(tensorrt.EngineError, match="Failed to parse the ONNX model"):
        built(device, network(2).SerializeToString()[:300])
    with pytest.raises(tensorrt.EngineError, match=r"no engine: .*at least one output"):
        built(device, FILE)
    text = "no tactics to implement the operation within workspace limit"
    with pytest.raises(tensorrt.EngineError, match=text):
        built(device, network(2), workspace_bytes=1)


@building
def test_a_shape_that_is_given_as_an_input_is_refused(device: Device) -> None:
    ports = [value("x", FLOAT, ["n", 4]), value("s", INT64, [2])], [value("y", FLOAT, ["a", "b"])]
    proto = model([("Reshape", ["x", "s"], ["y"], {})], *ports)
    with pytest.raises(tensorrt.EngineError, match="input s is a shape: make it a constant"):
        built(device, proto, profiles={"x": ((1, 4), (2, 4), (8, 4))})


@building
def test_profiles_that_do_not_fit_to_the_model_are_refused(device: Device) -> None:
    shape = (1, 3, 8, 8)
    for profiles, text in (
        ((), r"extents vary of x: float32\[\?, 3, 8, 8\]; give profiles"),
        ([{"z": (shape,) * 3}], "profile 0 has 'z', and the model's inputs are x"),
        ([PROFILE, {}], "profile 1 lacks the input x"),
        ({"x": ((1, 3, 8, 9),) * 3}, r"profile 0 has .* for the input x, float32\[\?, 3, 8, 8\]"),
        ({"x": ((3, 8, 8),) * 3}, "profile 0 has"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            built(device, network(), profiles=profiles)


@building
def test_inputs_that_do_not_fit_are_refused_before_anything_is_sent(device: Device) -> None:
    engine = built(device, network(2))
    x = np.zeros((2, 3, 8, 8), "float32")
    with refused(device, "float32[2, 3, 8, 8], not float64[2, 3, 8, 8]"):
        engine(x.astype("float64"))
    with refused(device, "float32[2, 3, 8, 8], not float32[1, 3, 8, 8]"):
        engine(x[:1])
    with refused(device, "no input 'z', but x"):
        engine.run({"z": x})
    with refused(device, "input x, float32[2, 3, 8, 8], is missing"):
        engine()
    with refused(device, "takes 1 inputs, not 2"):
        engine(x, x)
    with refused(device, "input x is given twice"):
        engine(x, x=x)


@building
def test_an_engine_is_built_again_after_its_context_was_killed(backend: Any) -> None:
    name = backend.__name__.rpartition(".")[2]
    with System(name, devices=1, recover="replay") as lab:
        device = lab.devices[0]
        engine = built(device, network(), profiles=PROFILE)
        facts, plan = engine.facts(), engine.plan().get()
        with pytest.raises(ContextLost):
            device.ask(Inject("kill")).result(WAIT_S)
        assert engine.facts(WAIT_S) == facts
        np.testing.assert_array_equal(engine.plan().get(), plan)
        engine.free()


def executes(device: Device) -> bool:
    """Whether there are engines for this card; refuse to go on where it is none."""
    if not device.name.startswith("cuda"):
        pytest.skip("the host executes no engines")
    return device.capability in CAPABILITIES


@building
def test_an_engine_computes_what_onnxruntime_does(device: Device) -> None:
    if not executes(device):
        pytest.skip(f"there are no engines for compute capability {device.capability}")
    require("onnxruntime")
    proto = network()
    engine = built(device, proto, profiles=[{"x": ((1, 3, 8, 8),) * 3}, PROFILE])
    loaded = tensorrt.load(device, engine.plan().get().tobytes(), cache=engine.runtime_cache())
    assert loaded.facts()[:3] == engine.facts()[:3]
    for n, profile in ((1, 0), (3, 1), (4, 1), (1, 0)):
        x = np.random.default_rng(n).standard_normal((n, 3, 8, 8)).astype("float32")
        wanted = onnxruntime(proto, x=x)[0]
        turned = device.put(np.ascontiguousarray(x.T)).T  # has other strides
        for given in (x, turned):
            for one in (engine, loaded):
                np.testing.assert_allclose(one(given, profile=profile).get(), wanted, atol=1e-5)
    assert "Layers" in loaded.inspect().result(WAIT_S)
    with pytest.raises(InvalidArgument, match=r"the output y is of shape \[4, 5\], not \[3, 5\]"):
        send(loaded, x=(4, 3, 8, 8), y=(3, 5), profile=1).result(WAIT_S)


@building
def test_operands_of_other_dtypes_are_refused_by_the_card(device: Device) -> None:
    executes(device)
    engine = built(device, network(2))
    x, half = (device.put(np.zeros((2, 3, 8, 8), dtype)) for dtype in ("float32", "float16"))
    with pytest.raises(InvalidArgument, match=r"the inputs of the engine are x: float32\[2, 3, 8"):
        tensorrt.execute(engine.handle, [half], [device.put(np.zeros((2, 5), "f"))]).result(WAIT_S)
    with pytest.raises(InvalidArgument, match=r"the outputs of the engine are y: float32\[2, 5\]"):
        tensorrt.execute(engine.handle, [x], []).result(WAIT_S)


@building
def test_a_card_without_engines_is_refused_by_name(device: Device) -> None:
    if executes(device):
        pytest.skip(f"there are engines for compute capability {device.capability}")
    engine = built(device, network(2))
    plan = engine.plan().get().tobytes()
    for ask in (
        lambda: tensorrt.load(device, plan).result(WAIT_S),
        lambda: engine.inspect().result(WAIT_S),
        lambda: send(engine, x=(2, 3, 8, 8), y=(2, 5)).result(WAIT_S),
    ):
        with pytest.raises(tensorrt.UnsupportedCard, match="executes nothing on a card") as caught:
            ask()
        assert caught.value.capability == device.capability
        assert caught.value.supported == CAPABILITIES
        assert "accel_lab.onnx.load" in caught.value.remedy


def send(
    engine: tensorrt.Engine, *, x: tuple[int, ...], y: tuple[int, ...], profile: int = 0
) -> Reply[None]:
    device = engine.device
    given, made = device.put(np.zeros(x, "float32")), device.put(np.zeros(y, "float32"))
    return tensorrt.execute(engine.handle, [given], [made], profile=profile)


# What is refused at the call needs no TensorRT.


@pytest.mark.parametrize("option", REFUSED)
def test_what_tensorrt_rtx_lacks_is_refused_with_why(device: Device, option: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        tensorrt.build(device, FILE, options=option)
    assert str(caught.value) == f"Build: there is no option {option!r}: {REFUSED[option]}"


def test_a_build_that_cannot_be_is_refused_at_the_call(device: Device) -> None:
    shapes = ((1, 3), (2, 3), (4, 3))
    given: Any
    for given, text in (
        ({"options": ["fast"]}, "an option is 'fast'; it may be tf32, strict_nans"),
        ({"capabilities": [8.9, 9.0]}, "no engines for compute capability 9.0, but for 7.5, 8.0"),
        ({"capabilities": [9.0]}, "run the ONNX model with accel_lab.onnx.load"),
        ({"workspace_bytes": -1}, "workspace_bytes is -1; it is an integer from 0"),
        ({"profiles": {"x": shapes[::-1]}}, "give the least, the usual and the largest"),
        ({"profiles": {"x": shapes[:2]}}, "give the least, the usual and the largest"),
        ({"profiles": {"x": (*shapes[:2], (4, 3, 1))}}, "of the same number of axes"),
        ({"profiles": {"x": 3}}, "a profile has three shapes of x, and not 3"),
        ({"profiles": [3]}, "has the shapes of inputs by name, and is not 3"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            tensorrt.build(device, FILE, **given)


def test_a_buffer_is_written_once_and_not_read_meanwhile(device: Device) -> None:
    x, y = device.put(np.zeros(3)), device.put(np.zeros(3))
    engine: Any = None  # which nobody looks at here
    Execute(engine, (x, x), (y,)).infer()
    for inputs, outputs in (((x,), (x,)), ((x,), (y, y)), ((), (y, x, y))):
        with pytest.raises(InvalidArgument, match="an output is another output or an input"):
            Execute(engine, inputs, outputs).infer()


def test_what_is_no_file_is_refused(device: Device, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"a path, bytes or an onnx\.ModelProto is wanted"):
        tensorrt.build(device, 3)
    with pytest.raises(InvalidArgument, match="the file is empty"):
        tensorrt.build(device, b"")
    with pytest.raises(FileNotFoundError):
        tensorrt.build(device, tmp_path / "none.onnx")
    for x in (np.zeros(3, "float32"), np.zeros((2, 2), "uint8"), np.zeros(0, "uint8")):
        with pytest.raises(InvalidArgument, match="a file is a vector of uint8, and model is"):
            device.ask(Build(device.put(x)))


def test_the_host_says_what_to_do_instead_of_loading_an_engine(device: Device) -> None:
    if device.name.startswith("cuda"):
        pytest.skip("cards load engines")
    with pytest.raises(UnsupportedDtype, match=r"no tensorrt\.Load; run the ONNX model with accel"):
        tensorrt.load(device, FILE)


@pytest.fixture
def _without_the_package(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", None)
    engine_builder.package.cache_clear()
    yield
    engine_builder.package.cache_clear()


@pytest.mark.usefixtures("_without_the_package")
def test_without_the_package_a_build_says_how_to_install_it() -> None:
    with pytest.raises(tensorrt.EngineError, match=r'pip install "accel-lab\[tensorrt\]"'):
        engine_builder.package()
