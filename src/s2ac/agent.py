"""The agent: learn, predict, sample, evaluate, save and load.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import s2ac
from s2ac.algorithms import ALGORITHMS, Algorithm
from s2ac.asking import Cloud, Evaluation, compiled_action, compiled_cloud, evaluation_of, rule_of
from s2ac.callbacks import Asked, Callback
from s2ac.envs.gymnasium.vector import Members
from s2ac.envs.observations import checked
from s2ac.envs.registry import EnvLike, Make, entry_of, environment, maker_of, probe
from s2ac.errors import InvalidArgument, check_between, check_count, check_name
from s2ac.ranges import MOST, MOST_STEPS
from s2ac.runs.places import checked_path, find_agent, free_directory
from s2ac.runs.policy import LoadedPolicy, load_policy
from s2ac.runs.saving import copy_to, is_run_at, write_copy
from s2ac.settings import RunConfig, resolve
from s2ac.training.evaluate import Episodes, Player, make_player
from s2ac.training.run import Run
from s2ac.training.trainer import begin, open_run, train, write_about
from s2ac.types import EnvSpec

if TYPE_CHECKING:
    from s2ac.deploy.export import Exported


class Agent:
    """One algorithm on one environment, for one or more seeds.

    Args:
        env: a name (`multigoal`, any Gymnasium id), a `gymnasium.Env`, a `SyncVectorEnv` or `AsyncVectorEnv` (which also sets
            `num_envs`), a `JaxEnv`, or a function that makes a `gymnasium.Env`. Actions must be a bounded one-dimensional Box; an environment that cannot be
            copied must come as a function.
        algo: s2ac, s2ac-phi, s2ac-amortized, sac, sac-nf, sql, ddpg or ppo.
        seeds: how many seeds to train, in one compiled call.
        directory: where the run is written once `learn` is called. Default: runs/ENV-ALGO, with a number if taken.
        preset: named settings to start from: default, paper or demo; on the MuJoCo tasks also categorical.
        **fields: any setting of the run (`RunConfig`) or of the algorithm (such as `S2acConfig`).
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
        if isinstance(make, Members):
            fields = {"num_envs": len(make.functions), **fields}
        _, _, algorithm_config, config = resolve(name, algo, preset, {**fields, "seeds": seeds})
        where = checked_path("directory", directory) if directory else free_directory(name, algo)
        if (where / "run.json").exists():
            raise InvalidArgument(f"directory = {str(where)!r} holds a run already: s2ac.load({str(where)!r})")
        run = Run(where, name, algo, algorithm_config, config, make)
        self._set_up(run.about, algorithm_config, config, run.loop.spec, run.loop.layout, make)
        self._run = run

    _run: Run | None = None
    _loaded: LoadedPolicy | None = None  # what a loaded agent came from, until it has a run
    _player: Player | None = None  # a loaded agent's, for episodes

    def _set_up(
        self,
        about: dict[str, Any],
        algorithm_config: Any,
        config: RunConfig,
        spec: EnvSpec,
        layout: Any,
        make: Make,
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
        """The run's directory; of a loaded agent, the directory that it was loaded from until it learns."""
        return self._run.directory if self._run else self._loaded.directory if self._loaded else None

    @property
    def env_step(self) -> int:
        """Environment steps of each seed so far."""
        return self._run.env_step if self._run else self._loaded.step if self._loaded else 0

    def __repr__(self) -> str:
        return f"Agent({self.env_name!r}, algo={self.algo!r}, seeds={self.config.seeds}) at step {self.env_step}"

    # --- Learning --------------------------------------------------------------------------------------------

    def learn(self, steps: float, callback: Callback | None = None, *, progress_bar: bool | None = None) -> "Agent":
        """Train every seed for `steps` more environment steps; call it again to continue. Ctrl-C or an error in a callback saves first.

        Args:
            steps: how many more environment steps of each seed.
            callback: called with a `Progress` every `log_every` steps. Training ends if it returns False or raises `StopTraining`.
            progress_bar: a bar (True) or a line for each record (False); by default a bar on a terminal and lines elsewhere.
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
        asked = Asked(callback, run, self)

        def ask(records: list[dict[str, Any]]) -> bool:
            self._policies.clear()
            return asked(records)

        finished = train(run, ask, progress_bar)
        self._policies.clear()
        if not finished and not asked.stopped:
            raise KeyboardInterrupt
        return self

    def evaluate(self, episodes: int = 20, select: str = "sample") -> Evaluation:
        """Play whole episodes of every seed by a selection rule, on environments of their own."""
        check_count("episodes", episodes, 1, MOST)
        check_name("select", select, self.algorithm.rules)
        return evaluation_of(self._play(select, episodes))

    # --- Asking ----------------------------------------------------------------------------------------------

    def predict(
        self,
        observation: Any,
        select: str | None = None,
        *,
        deterministic: bool = False,
        seed_index: int = 0,
        draw: int | None = None,
    ) -> np.ndarray:
        """The action of one observation `[D]`, or of a batch `[B, D]`, in the environment's own units.

        Args:
            observation: numbers `[O]` or `[B, O]`, or a Dict observation as the environment gives it.
            select: sample (the default), softmax, argmax, mean or amortized, as the algorithm has them (`agent.algorithm.rules`).
            deterministic: use the algorithm's greedy rule, `argmax` for S²AC and SQL, `mean` for the others. An observation then always gets the same action.
            seed_index: which seed's policy, 0 for the first.
            draw: calls with the same number draw the same random numbers; without it each call draws new ones.
        """
        flat = checked(observation, self.spec.observation_size, self._layout)
        select = rule_of(self.algorithm, select, deterministic)
        draw = 0 if deterministic and draw is None else draw
        compiled = self._compiled.get(select)
        if compiled is None:
            compiled = self._compiled[select] = compiled_action(self.algorithm, self.spec, select)
        return np.asarray(compiled(self.policy_state(seed_index), self._key, self._count(draw), flat))

    def sample(self, observation: Any, num: int = 64, *, seed_index: int = 0, draw: int | None = None) -> Cloud:
        """`num` particles of an observation (or of each in a batch), their log-density before weighting, and the executed policy's entropy."""
        check_count("num", num, 1, MOST)
        cloud = self.algorithm.cloud
        if cloud is None:
            raise InvalidArgument(f"{self.algo} has no set of actions to sample: use predict(observation, 'sample')")
        flat = checked(observation, self.spec.observation_size, self._layout)
        compiled = self._compiled.get(num)
        if compiled is None:
            compiled = self._compiled[num] = compiled_cloud(cloud, num)
        drawn = compiled(self.policy_state(seed_index), self._key, self._count(draw), flat)
        return Cloud(*map(np.asarray, drawn))

    def _count(self, draw: int | None) -> np.uint32:
        """Which draw this is: the given one, or the next."""
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
            states = self._states()
            self._policies[seed_index] = jax.device_put(jax.tree.map(lambda leaf: leaf[seed_index], states))
        return self._policies[seed_index]

    def _states(self) -> Any:
        """The algorithm's state of every seed."""
        if self._run:
            return self._run.loop.state.algorithm
        assert self._loaded is not None
        return self._loaded.states

    # --- Files -----------------------------------------------------------------------------------------------

    def save(self, directory: str | Path, replay: bool = False) -> Path:
        """Write the agent to a directory that `s2ac.load` reads; with `replay=True` also what is needed to continue learning.

        An agent that was saved there before is replaced; any other directory with files in it is refused.
        """
        target = checked_path("directory", directory)
        if self._run and self._run.records and target.resolve() == self._run.directory.resolve():
            self._run.save()  # the run's own directory: a checkpoint among the others
            return target
        if self._run is None and self._loaded and is_run_at(self._loaded, target):
            return target  # a training's own directory, from which nothing has changed

        def write(aside: Path) -> None:
            if self._run is None:
                assert self._loaded is not None
                write_copy(self._loaded, aside, replay)
            else:
                write_about(self._run, aside)
                self._run.save(aside, replay)

        copy_to(target, write)
        return target

    def export(self, file: str | Path, format: str = "onnx", select: str | None = None, **options: Any) -> "Exported":
        """Write the policy to a file (onnx, stablehlo or weights) that runs without this package, and check it against this agent.

        Default rule: `sample`; with the format `weights` it is `amortized` or `mean` if `sample` needs more than one network. The options are `batch`
        (observations per call), `seed_index` (which seed's policy) and `noise_seed` (fixes the random numbers inside the file).
        """
        from s2ac.deploy.export import export

        return export(self, file, format, select, **options)

    def _with_run(self) -> Run:
        """The run with its replay, opened when it is first needed: to learn."""
        if self._run is None:
            assert self._loaded is not None
            run, complaints = open_run(self._loaded.directory, self._make)
            if run.records is None:  # a saved copy stays as it is: learning goes on elsewhere, no bits are promised
                run.directory = free_directory(self.env_name, self.algo)
                complaints = []
            for complaint in complaints:
                warnings.warn(complaint, stacklevel=3)
            self._run, self._player = run, None
        return self._run

    def _play(self, select: str, episodes: int) -> Episodes:
        """Episodes by the run's environments, or if the agent has not learned since it was loaded by some of its own."""
        if self._run is not None:
            return self._run.loop.play((select,), episodes)[select]
        self._player = self._player or make_player(self.env_name, self._make, self.algorithm, self.spec, self.config)
        return self._player.play(self._states(), (select,), episodes)[select]


def load(directory: str | Path, env: EnvLike | None = None) -> Agent:
    """Load an agent: one that `Agent.save` wrote, any run of `s2ac train`, or a shipped one by its name.

    `env` is needed only to learn or evaluate, and only if the environment was not given by name.
    """
    name, make = environment(env) if env is not None else (None, None)
    if name is not None and make is None and entry_of(name) is None:
        make = maker_of(name)
    policy = load_policy(find_agent(directory), make)
    for complaint in policy.complaints:
        warnings.warn(complaint, stacklevel=2)
    if name is not None and (given := probe(name, make)[0]) != policy.spec:
        raise InvalidArgument(f"env = {name!r} has {given}, but the agent was trained with {policy.spec}")
    agent = Agent.__new__(Agent)
    agent._set_up(policy.about, policy.algorithm_config, policy.config, policy.spec, policy.layout, make)
    agent._loaded = policy
    return agent
