"""A trained policy as a file that runs without this package: ONNX, StableHLO, or plain weights.

    onnx, stablehlo   (observation [B, O], noise [B, K]) ↦ action [B, D], already in the environment's units
    weights           safetensors of one network and, beside it, JSON that says how to run it

Whatever a rule draws at random is an explicit input of standard normal numbers, so that outputs can be compared; a
rule that draws nothing has no such input, and `noise_seed` fixes it inside the file. Every file is run on 1,000
observations and compared with the JAX policy before it is put in its place; one that differs never gets there.
"""

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from s2ac.deploy.noise import Unexportable, with_noise
from s2ac.deploy.source import Trained
from s2ac.deploy.weights import Runner, load_weights, rules_of_weights, write_weights
from s2ac.errors import DiskError, InvalidArgument, check_count, check_name
from s2ac.runs.files import make_directory, put
from s2ac.runs.places import checked_path
from s2ac.types import Array

FORMATS = {"onnx": ".onnx", "stablehlo": ".stablehlo", "weights": ".safetensors"}
TOLERANCE = 1e-5
"""Largest difference from the JAX policy, in units of half the action's range or of 1, whichever is more."""

CHECKED = 1_000
MAX_TIES = 10
MAX_BYTES = 2**31 - 1  # of a protobuf


class Exported(NamedTuple):
    """What was written, and how well it agrees."""

    file: Path
    noise_size: int  # K; 0 if the file takes an observation alone
    max_difference: float
    ties: int  # observations on an edge of the policy, where rounding decides: see `check_outputs`


class Policy(NamedTuple):
    """A selection rule of one seed as a pure function."""

    function: Callable[[Array, Array], Array]  # observation [O], noise [K] to action [D]
    noise_size: int
    observation_size: int
    scale: np.ndarray  # [D], what differences are measured in


def export(
    agent: Trained,
    file: str | Path,
    format: str = "onnx",
    select: str | None = None,
    *,
    batch: int = 1,
    seed_index: int = 0,
    noise_seed: int | None = None,
) -> Exported:
    """Write the policy of one of the agent's seeds to `file`, and check it.

    Args:
        agent: from `s2ac.Agent` or `s2ac.load`.
        file: where to; the usual ending is .onnx, .stablehlo or .safetensors.
        format: onnx, stablehlo or weights.
        select: the selection rule. Default: sample; with weights amortized or mean, where sample is more than one network.
        batch: observations per call, fixed in the file (onnx and stablehlo).
        seed_index: whose policy, 0 for the first seed.
        noise_seed: draw the noise from this seed once and keep it inside, so that the file takes no noise.
    """
    check_name("format", format, FORMATS)
    select = rule_for(agent, format) if select is None else select
    check_name("select", select, agent.algorithm.rules)
    check_count("batch", batch, 1)
    path = checked_path("file", file)
    if format == "weights" and path.suffix == ".json":
        raise InvalidArgument(
            f"file = {str(path)!r}: the description of the weights gets that name; end it in .safetensors"
        )
    policy = policy_of(agent, select, seed_index, noise_seed)
    if format == "onnx":
        write, load = _write_onnx, load_onnx
    elif format == "stablehlo":
        write, load = _write_stablehlo, load_stablehlo
    else:
        write, load = write_weights, load_weights
    about = {"s2ac": agent.version, "env": agent.env_name, "algo": agent.algo, "select": select}
    try:
        make_directory(path.parent)
        with tempfile.TemporaryDirectory(prefix=f".{path.stem[:100]}.tmp-", dir=path.parent) as aside:
            whole = {**about, "layers": (agent, select, seed_index, noise_seed)}
            written = write(policy, Path(aside) / path.name, batch, whole)
            difference, ties = check_outputs(policy, load(written[0]), batch)
            put(written, path.parent)
    except OSError as error:
        raise DiskError(f"cannot write {path}: {error.strerror}; choose another place with --out") from error
    return Exported(path, policy.noise_size, difference, ties)


def rule_for(agent: Trained, format: str) -> str:
    """The rule that is exported if none is named."""
    return next(iter(rules_of_weights(agent)), "sample") if format == "weights" else "sample"


def policy_of(agent: Trained, select: str, seed_index: int = 0, noise_seed: int | None = None) -> Policy:
    """The agent's rule with explicit noise, its parameters inside and its action clipped into the box."""
    spec, state = agent.spec, agent.policy_state(seed_index)
    low, high = np.array(spec.action_low, np.float32), np.array(spec.action_high, np.float32)

    def act(key: Array, observation: Array) -> Array:
        return jnp.clip(agent.algorithm.act(key, state, observation, select), low, high)

    example = jax.ShapeDtypeStruct((spec.observation_size,), np.float32)
    function, size = with_noise(act, jax.random.key(0), example)
    scale = np.maximum(1, 0.5 * (high - low))
    if noise_seed is None:
        return Policy(function, size, spec.observation_size, scale)
    fixed: Any = np.random.default_rng(noise_seed).standard_normal(size).astype(np.float32)
    return Policy(lambda observation, _: function(observation, fixed), 0, spec.observation_size, scale)


def _batched(policy: Policy) -> Callable[..., Array]:
    """The policy for a batch; without noise it takes observations alone."""
    if policy.noise_size:
        return jax.vmap(policy.function)
    nothing: Any = np.zeros(0, np.float32)
    return jax.vmap(lambda observation: policy.function(observation, nothing))


def _inputs(policy: Policy, batch: int) -> list[tuple[int, int]]:
    shapes = [(batch, policy.observation_size)]
    return [*shapes, (batch, policy.noise_size)] if policy.noise_size else shapes


def check_outputs(policy: Policy, runner: Runner, batch: int) -> tuple[float, int]:
    """Largest difference from the JAX policy on 1,000 observations, and how many were decided by rounding.

    A policy that follows a critic with ReLU, or takes the best of several actions, jumps at edges; an observation
    that lies on one, within rounding, may come out on either side. A row that differs is such a tie if the JAX policy
    itself gives the file's answer at an observation that differs in its last digits. More than 1 % of them is an error.
    """
    generator = np.random.default_rng(0)
    num = -(-CHECKED // batch) * batch
    observations = generator.standard_normal((num, policy.observation_size)).astype(np.float32)
    noise = generator.standard_normal((num, policy.noise_size)).astype(np.float32)
    compiled = jax.jit(jax.vmap(policy.function))
    wanted = np.asarray(compiled(observations, noise))
    parts = [runner(observations[i : i + batch], noise[i : i + batch]) for i in range(0, num, batch)]
    shapes = {part.shape for part in parts}
    if shapes != {(batch, wanted.shape[1])}:
        raise Unexportable(
            f"the exported policy gives shape {shapes.pop()}, not {(batch, wanted.shape[1])}; nothing was written"
        )
    found = np.concatenate(parts)
    scale = policy.scale[None]
    difference = np.nan_to_num(np.abs(found - wanted) / scale, nan=np.inf).max(axis=1)
    odd = np.flatnonzero(difference > TOLERANCE)
    good = difference[difference <= TOLERANCE]
    worst = float(difference.max())
    for row in odd[: MAX_TIES + 1]:
        near = observations[row][None] * (1 + 1e-6 * generator.standard_normal((num, policy.observation_size)))
        answers = np.asarray(compiled(near.astype(np.float32), np.repeat(noise[row][None], num, axis=0)))
        if len(odd) > MAX_TIES or (np.abs(answers - found[row][None]) / scale).max(axis=1).min() > 10 * TOLERANCE:
            raise Unexportable(
                f"the exported policy differs from the JAX policy by {worst:.2g} on {len(odd)} of {num} observations, "
                f"more than {TOLERANCE:g}; nothing was written: try another --format or --select"
            )
    return float(good.max()), len(odd)


def _write_onnx(policy: Policy, path: Path, batch: int, about: dict[str, Any]) -> list[Path]:
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    to_onnx, onnx = _need("jax2onnx", "onnx").to_onnx, _need("onnx", "onnx")
    names = ["observation", "noise"][: 1 + bool(policy.noise_size)]
    logger = logging.getLogger("onnx_ir")  # warns of every scalar; the outputs are compared instead
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), _only_jax_plugins():
            warnings.simplefilter("ignore")
            shapes = _inputs(policy, batch)
            model = to_onnx(
                _batched(policy), shapes, model_name="s2ac policy", input_names=names, output_names=["action"]
            )
    except (NotImplementedError, TypeError, ValueError, RuntimeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise Unexportable(f"ONNX cannot express this policy ({reason}): use --format stablehlo") from error
    finally:
        logger.setLevel(level)
    if model.ByteSize() > MAX_BYTES:
        raise Unexportable(f"the policy takes {model.ByteSize():,} bytes, more than ONNX's 2 GB: use --format weights")
    _mend_outer_products(model)
    onnx.helper.set_model_props(model, {name: str(about[name]) for name in ("s2ac", "env", "algo", "select")})
    path.write_bytes(model.SerializeToString())
    return [path]


def _mend_outer_products(model: Any) -> None:
    """jax2onnx writes a product over a shared axis without a sum, such as [B, C] by [C, D], as `az,zb->azzb`, which no runtime
    takes. JAX's order is the shared axes first: `az,zb->zab`. The file is compared with the JAX policy afterwards."""
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type != "Einsum" or attribute.name != "equation":
                continue
            inputs, _, output = attribute.s.decode().partition("->")
            if len(set(output)) == len(output):
                continue
            left, right = inputs.split(",")
            shared = [letter for letter in left if letter in right]
            rest = [letter for letter in left + right if letter not in shared]
            attribute.s = f"{inputs}->{''.join([*shared, *rest])}".encode()


@contextmanager
def _only_jax_plugins() -> Iterator[None]:
    """jax2onnx loads plugins for every network library and builds their examples, some 20 s; the policy needs JAX's own."""
    system = _need("jax2onnx.plugins.plugin_system", "onnx")
    if getattr(system, "_already_imported_plugins", None) is not False or not hasattr(system, "_import_tree"):
        yield
        return
    system._import_tree(Path(system.__file__).parent / "jax", "jax2onnx.plugins.jax")
    system._already_imported_plugins = True
    try:
        yield
    finally:
        system._already_imported_plugins = False  # whoever uses jax2onnx next gets the rest


def load_onnx(path: Path) -> Runner:
    """The file in onnxruntime, as a function of a batch."""
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    runtime = _need("onnxruntime", "onnx")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = runtime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return lambda *arrays: session.run(None, dict(zip(names, arrays, strict=False)))[0]


def _write_stablehlo(policy: Policy, path: Path, batch: int, about: dict[str, Any]) -> list[Path]:
    _need("flatbuffers", "stablehlo")
    from jax import export as jax_export

    shapes = [jax.ShapeDtypeStruct(shape, np.float32) for shape in _inputs(policy, batch)]
    path.write_bytes(
        jax_export.export(jax.jit(_batched(policy)), platforms=("cpu", "cuda", "tpu"))(*shapes).serialize()
    )
    return [path]


def load_stablehlo(path: Path) -> Runner:
    """The file in JAX, as a function of a batch."""
    _need("flatbuffers", "stablehlo")
    from jax import export as jax_export

    exported = jax_export.deserialize(bytearray(path.read_bytes()))
    call = jax.jit(exported.call)
    return lambda *arrays: np.asarray(call(*arrays[: len(exported.in_avals)]))


def _need(module: str, extra: str) -> Any:
    """An optional package, or one line that says how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise InvalidArgument(f"this format needs {module}, which is missing: pip install 's2ac[{extra}]'") from error
