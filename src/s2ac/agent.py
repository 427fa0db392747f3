"""The agent: train, ask, evaluate, save and load in five verbs.

    import s2ac
    agent = s2ac.Agent("Pendulum-v1", algo="s2ac")
    agent.learn(20_000)
    action = agent.predict(observation, select="argmax")
    agent.save("pendulum"); agent = s2ac.load("pendulum")

An agent trains in a run directory like `s2ac train`'s, with the same records and checkpoints, so the command line's
`report` and `watch` work on it, and where the environment was given by name `evaluate`, `play` and `train --resume` too.
A loaded agent needs its environment only to learn or to be evaluated, not to predict.
"""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import s2ac
from s2ac.algorithms import ALGORITHMS, Algorithm
from s2ac.envs.gymnasium.adapter import MakeEnv, maker
from s2ac.envs.observations import checked
from s2ac.errors import InvalidArgument, check_between, check_count, check_name
from s2ac.ranges import MOST, MOST_STEPS
from s2ac.resolve import EnvLike, checked_path, environment, find_agent, free_directory, probe
from s2ac.runs import checkpoint
from s2ac.runs.about import check_same, read_about
from s2ac.runs.manifest import facts_of
from s2ac.runs.saving import Loaded, copy_to
from s2ac.runs.trees import arrays_to_tree
from s2ac.settings import RunConfig, resolve
from s2ac.training.device import stream
from s2ac.training.run import ENVS, Run
from s2ac.training.trainer import begin, configs_of, open_run, train, write_about
from s2ac.types import Array, EnvSpec

if TYPE_CHECKING:
    from s2ac.deploy.export import Exported

PREDICT, CLOUD = 100, 101  # streams of random numbers of their own, apart from those of training


class StopTraining(Exception):
    """Raise it in a callback to end `learn`; the state is saved and `learn` returns."""


class Progress(NamedTuple):
    """What a callback gets between two chunks of training."""

    env_step: int
    records: list[dict[str, Any]]  # the chunk's, one per seed, and those of an evaluation if there was one
    agent: "Agent"


class Cloud(NamedTuple):
    """Actions of an observation with their density; with a batch of observations `[B, …]`."""

    particles: np.ndarray  # [num, D], actions
    log_prob: np.ndarray  # [num], log-density in action space; nan where the algorithm does not know it (SQL)
    entropy: np.ndarray  # (), −mean log_prob


class Evaluation(NamedTuple):
    """Returns of whole episodes."""

    mean: float
    std: float
    returns: np.ndarray  # [S, E]
    lengths: np.ndarray  # [S, E]


Callback = Callable[[Progress], bool | None]


class Agent:
    """One algorithm on one environment, for one or more seeds.

    Args:
        env: a name (`multigoal`, any Gymnasium id), a `gymnasium.Env`, or a function that makes one. Actions must be a
            bounded one-dimensional Box; an environment that cannot be copied must come as a function.
        algo: s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg or ppo.
        seeds: how many to train, in one compiled call.
        directory: where the run is written once `learn` is called. Default: runs/ENV-ALGO, with a number if taken.
        preset: named settings to start from: default, paper or demo; on the MuJoCo tasks also ten-particles and target-networks.
        **fields: any field of the run (`RunConfig`) or of the algorithm (such as `S2acConfig`).
    """

    def __init__(
        self,
        env: EnvLike,
        algo: str = "s2ac",
        seeds: int = 1,
        *,
        directory: str | Path | None = None,
        preset: str = "default",
        **fields: Any,
    ) -> None:
        name, make = environment(env)
        if "steps" in fields:
            raise InvalidArgument("steps: give them to learn(steps)")
        _, _, algorithm_config, config = resolve(name, algo, preset, {**fields, "seeds": seeds})
        where = checked_path("directory", directory) if directory else free_directory(name, algo)
        if (where / "run.json").exists():
            raise InvalidArgument(f"directory = {str(where)!r} holds a run already: s2ac.load({str(where)!r})")
        run = Run(where, name, algo, algorithm_config, config, make)
        self._set_up(run.about, algorithm_config, config, run.loop.spec, run.loop.layout, make)
        self._run = run

    _run: Run | None = None
    _loaded: Loaded | None = None  # where a loaded agent came from, and what is there, until it has a run
    _state: Any = None
    _player: Run | None = None  # a loaded agent's run without its replay, for episodes

    def _set_up(
        self,
        about: dict[str, Any],
        algorithm_config: Any,
        config: RunConfig,
        spec: EnvSpec,
        layout: Any,
        make: MakeEnv | None,
    ) -> None:
        """What new and loaded agents have in common."""
        self.env_name: str = about["env"]
        self.algo: str = about["algo"]
        self.algorithm_config, self.config = algorithm_config, config
        self.spec, self.version = spec, s2ac.__version__
        self.algorithm: Algorithm = ALGORITHMS[self.algo].make(spec, algorithm_config)
        self._layout = layout or {}
        self._make = make
        self._policies: dict[int, Any] = {}  # the state of one seed, by index; emptied by learning
        self._compiled: dict[Any, Any] = {}
        self._draws = 0
        self._key = jax.random.key(config.first_seed)

    @property
    def directory(self) -> Path | None:
        """The run's directory; what was loaded is elsewhere if it was a saved copy."""
        return self._run.directory if self._run else self._loaded.source if self._loaded else None

    @property
    def env_step(self) -> int:
        """Environment steps of each seed so far."""
        return self._run.env_step if self._run else int(self._loaded.manifest["step"]) if self._loaded else 0

    def __repr__(self) -> str:
        return f"Agent({self.env_name!r}, algo={self.algo!r}, seeds={self.config.seeds}) at step {self.env_step}"

    # --- Learning --------------------------------------------------------------------------------------------

    def learn(self, steps: float, callback: Callback | None = None) -> "Agent":
        """Train every seed for `steps` more environment steps; can be called again to go on.

        `callback` is called between chunks (every `log_every` steps) with a `Progress`; if it returns False or raises
        `StopTraining`, training ends. Whatever ends it, the state is saved first: Ctrl-C (which then goes on as
        KeyboardInterrupt) and a callback that raises as well.
        """
        check_between("steps", steps, 1, MOST_STEPS)
        run = self._with_run()
        new = run.records is None
        if run.env_step and run.lacks_replay():
            warnings.warn(
                "this agent was saved without its replay (replay=False): it fills a new one with uniform actions first",
                stacklevel=2,
            )
        if run.differs:
            warnings.warn(run.differs, stacklevel=2)
            run.differs = ""
        run.aim(run.env_step + steps)
        if new:
            begin(run)
        else:
            write_about(run, run.directory)
        stopped = False

        def ask(records: list[dict[str, Any]]) -> bool:
            nonlocal stopped
            self._policies.clear()
            if callback is not None:
                try:
                    stopped = callback(Progress(run.env_step, records, self)) is False
                except StopTraining:
                    stopped = True
                except Exception as error:
                    inner = error.__traceback__.tb_next if error.__traceback__ else None
                    error.add_note(f"(raised by the callback; the state is saved: s2ac.load({str(run.directory)!r}))")
                    raise error.with_traceback(inner) from error.__cause__
            return not stopped

        finished = train(run, ask)
        self._policies.clear()
        if not finished and not stopped:
            raise KeyboardInterrupt
        return self

    def evaluate(self, episodes: int = 20, select: str = "sample") -> Evaluation:
        """Play whole episodes of every seed by a selection rule, on environments of their own."""
        check_count("episodes", episodes, 1, MOST)
        check_name("select", select, self.algorithm.rules)
        played = self._to_play().play((select,), episodes)[select]
        total = np.asarray(played.total)
        return Evaluation(float(total.mean()), float(total.std()), total, np.asarray(played.length))

    # --- Asking ----------------------------------------------------------------------------------------------

    def predict(
        self, observation: Any, select: str = "sample", *, seed_index: int = 0, draw: int | None = None
    ) -> np.ndarray:
        """The action of one observation `[D]`, or of a batch `[B, D]`, in the environment's own units.

        Args:
            observation: numbers `[O]` or `[B, O]`, or a Dict observation as the environment gives it.
            select: sample, softmax, argmax, mean or amortized, as the algorithm has them (`agent.algorithm.rules`).
            seed_index: whose policy, 0 for the first seed.
            draw: the same number gives the same random draws; otherwise each call draws new ones.
        """
        flat = checked(observation, self.spec.observation_size, self._layout)
        compiled = self._compiled.get(select)
        if compiled is None:
            check_name("select", select, self.algorithm.rules)
            compiled = self._compiled[select] = jax.jit(
                lambda *given: act_of(self.algorithm, self.spec, select, *given)
            )
        return np.asarray(compiled(self.policy_state(seed_index), self._key, self._draw_of(draw), flat))

    def sample(self, observation: Any, num: int = 64, *, seed_index: int = 0, draw: int | None = None) -> Cloud:
        """`num` actions of an observation (or of each in a batch) with their log-density, and the entropy they tell."""
        check_count("num", num, 1, MOST)
        cloud = self.algorithm.cloud
        if cloud is None:
            raise InvalidArgument(f"{self.algo} has no set of actions to sample: use predict(observation, 'sample')")
        flat = checked(observation, self.spec.observation_size, self._layout)
        compiled = self._compiled.get(num)
        if compiled is None:

            def one(state: Any, key: Array, count: Array, observation: Array) -> Any:
                drawn = over_batch(lambda k, o: cloud(k, state, o, num)[:2], stream(key, CLOUD, count), observation)
                return (*drawn, -jnp.mean(drawn[1], axis=-1))

            compiled = self._compiled[num] = jax.jit(one)
        drawn = compiled(self.policy_state(seed_index), self._key, self._draw_of(draw), flat)
        return Cloud(*map(np.asarray, drawn))

    def _draw_of(self, draw: int | None) -> np.uint32:
        """The number of a draw: what was asked for, or the next one."""
        if draw is None:
            self._draws += 1
            return np.uint32(self._draws)
        check_count("draw", draw, 0, 2**32 - 1)
        return np.uint32(draw)

    def policy_state(self, seed_index: int = 0) -> Any:
        """The algorithm's state of one seed."""
        if seed_index not in self._policies:
            if not (isinstance(seed_index, int) and 0 <= seed_index < self.config.seeds):
                raise InvalidArgument(f"seed_index = {seed_index!r}: must be from 0 to {self.config.seeds - 1}")
            states = self._run.loop.state.algorithm if self._run else self._state
            self._policies[seed_index] = jax.device_put(jax.tree.map(lambda leaf: leaf[seed_index], states))
        return self._policies[seed_index]

    # --- Files -----------------------------------------------------------------------------------------------

    def save(self, directory: str | Path, replay: bool = False) -> Path:
        """Write the agent to a directory that `s2ac.load` reads; with `replay=True` also what learning needs to go on.

        An agent that was saved there before is replaced; any other directory with files in it is refused.
        """
        target = checked_path("directory", directory)
        if self._run and self._run.records and target.resolve() == self._run.directory.resolve():
            self._run.save()  # the run's own directory: a checkpoint among the others
            return target
        if self._run is None and self._loaded and self._loaded.is_run_at(target):
            return target  # a training's own directory, from which nothing has changed

        def write(aside: Path) -> None:
            if self._run is None:
                assert self._loaded is not None
                self._loaded.write(aside, replay, self.config.capacity)
            else:
                write_about(self._run, aside)
                self._run.save(aside, replay)

        copy_to(target, write)
        return target

    def export(self, file: str | Path, format: str = "onnx", select: str = "sample", **options: Any) -> "Exported":
        """Write a policy that runs without this package, checked against this one: see `s2ac.deploy.export.export`."""
        from s2ac.deploy.export import export

        return export(self, file, format, select, **options)

    def _with_run(self) -> Run:
        """The run with its replay, opened when it is first needed: to learn."""
        if self._run is None:
            assert self._loaded is not None
            run, complaints = open_run(self._loaded.source, self._make)
            if run.records is None:  # a saved copy stays as it is: learning goes on elsewhere, no bits are promised
                run.directory = free_directory(self.env_name, self.algo)
                complaints = []
            for complaint in complaints:
                warnings.warn(complaint, stacklevel=3)
            self._run, self._player = run, None
        return self._run

    def _to_play(self) -> Run:
        """The run, or if the agent has not learned since it was loaded one without its replay."""
        if self._run is not None:
            return self._run
        if self._player is None:
            assert self._loaded is not None
            self._player, _ = open_run(self._loaded.source, self._make, replay=False)
        return self._player


def load(directory: str | Path, env: EnvLike | None = None) -> Agent:
    """An agent from a directory: one that `Agent.save` wrote, any run of `s2ac train`, or a shipped one by its name.

    `env` is needed to learn or evaluate if the environment was not given by name; to predict it is not.
    """
    source = find_agent(directory)
    about = read_about(source)
    check_name(f"{source}/run.json: algo", about.get("algo"), ALGORITHMS)
    algorithm_config, config = configs_of(about, source)
    manifest, arrays, _, complaints = checkpoint.load_latest(source, replay=False)
    for complaint in complaints:
        warnings.warn(complaint, stacklevel=2)
    name, make = environment(env) if env is not None else (about["env"], None)
    if env is not None and make is None and name not in ENVS:
        make = maker(name)
    facts = facts_of(manifest)
    check_same(source, about, facts["about"])
    if "spec" in facts:
        ends = (tuple(facts["spec"][f"action_{end}"]) for end in ("low", "high"))
        spec, layout = EnvSpec(facts["spec"]["observation_size"], *ends), facts.get("layout")
    else:
        spec, layout = probe(name, make)
    if env is not None and (given := probe(name, make)[0]) != spec:
        raise InvalidArgument(f"env = {name!r} has {given}, but the agent was trained with {spec}")
    agent = Agent.__new__(Agent)
    agent._set_up(about, algorithm_config, config, spec, layout, make)
    agent._loaded = Loaded(source, about, manifest, arrays)
    like = jax.eval_shape(jax.vmap(agent.algorithm.init), jax.random.split(agent._key, config.seeds))
    own = {name: array for name, array in arrays.items() if name.startswith("['algorithm']")}
    agent._state = arrays_to_tree({"algorithm": like}, own)["algorithm"]
    return agent


def over_batch(function: Callable[[Array, Array], Any], key: Array, observation: Array) -> Any:
    """A function of a key and one observation, on one observation or a batch."""
    if observation.ndim == 1:
        return function(key, observation)
    return jax.vmap(function)(jax.random.split(key, observation.shape[0]), observation)


def act_of(
    algorithm: Algorithm, spec: EnvSpec, select: str, state: Any, key: Array, count: Array, observation: Array
) -> Array:
    """The action, inside the box, by the `count`-th draw."""
    low, high = jnp.asarray(spec.action_low, jnp.float32), jnp.asarray(spec.action_high, jnp.float32)

    def one(key: Array, observation: Array) -> Array:
        return jnp.clip(algorithm.act(key, state, observation, select), low, high)

    return over_batch(one, stream(key, PREDICT, count), observation)
