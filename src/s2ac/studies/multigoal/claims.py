"""The paper's claims 4 to 11 about multigoal, decided from the study's records."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from s2ac.studies.multigoal.systems import ALPHAS, EXTRAS, MAP, MODE, SYSTEMS
from s2ac.studies.statistics import ENOUGH_SEEDS, Estimate, t_interval
from s2ac.studies.study import Claim, Record, Verdict, interval, markdown, verdict

S2AC, PHI, AMORTIZED, SAC, SQL, SAC_NF = SYSTEMS
UNMOVED, PHI_FEW, PRINTED = EXTRAS


def agents(records: list[Record], system: str, alpha: float) -> list[Record]:
    """The agents of a system at a temperature, by seed."""
    found = [r for r in records if r.get("system") == system and r["alpha"] == alpha]
    return sorted(found, key=lambda r: r["seed"])


def optimum(records: list[Record], alpha: float) -> Record:
    """The exact optimum at a temperature."""
    return next(r for r in records if r["kind"] == "optimum" and r["alpha"] == alpha)


def over_agents(records: list[Record], system: str, alpha: float, number: Callable[[Record], float]) -> np.ndarray:
    """A number of each agent."""
    return np.array([number(r) for r in agents(records, system, alpha)], np.float64)


def change(
    records: list[Record],
    system: str,
    number: Callable[[Record], float],
    between: tuple[float, float] = (ALPHAS[0], ALPHAS[-1]),
) -> Estimate:
    """How a number differs between a higher temperature and a lower one, seed by seed; by default the highest and the lowest."""
    low, high = (over_agents(records, system, alpha, number) for alpha in between)
    return t_interval(high - low)


def mean_over_alphas(records: list[Record], system: str, number: Callable[[Record], float]) -> Estimate:
    """A number averaged over the temperatures, seed by seed."""
    return t_interval(np.mean([over_agents(records, system, alpha, number) for alpha in ALPHAS], axis=0))


def all_goals(record: Record, rule: str = "sample") -> bool:
    """Whether an agent keeps every goal by a rule."""
    return min(record[rule]["shares"][:-1]) > MODE


def goals_kept(records: list[Record], system: str, alpha: float, rule: str = "sample") -> float:
    """The share of a system's agents that keep every goal by a rule."""
    return float(np.mean([all_goals(r, rule) for r in agents(records, system, alpha)]))


def gap(records: list[Record], system: str, alpha: float, rule: str = "sample") -> Estimate:
    """J* − J(π) by a rule, over a system's agents."""
    return t_interval(over_agents(records, system, alpha, lambda r: r[rule]["gap"]))


def left_share(shares: list[float]) -> float:
    """Share of the left goals among the episodes that reach one; even if none does."""
    reached = sum(shares[:-1])
    return (reached - shares[0]) / reached if reached else 2 / 3


def total_variation(record: Record, best: Record) -> float:
    """Distance of an agent's goal shares to the optimum's."""
    return 0.5 * float(np.abs(np.array(record["sample"]["shares"]) - np.array(best["shares"])).sum())


def rounds(records: list[Record], system: str) -> int:
    """For how many rounds the agents of a system were trained: the fewest, if they differ."""
    return min(r["rounds"] for r in records if r.get("system") == system)


def decide(records: list[Record]) -> list[Claim]:
    """Every claim, in order, each by the seeds that all its systems have. Claims whose systems are missing, or were not
    trained alike, are not tested, and few seeds decide nothing."""
    made: list[Claim] = []
    for number, (text, place, needs, judge) in CLAIMS.items():
        shared = set.intersection(*({r["seed"] for r in records if r.get("system") == s} for s in needs))
        seeds = len(shared)
        if not shared:
            why = "its systems are not in the records"
            made.append(Claim(number, text, place, "–", None, "not tested", why))
        else:
            holds, measured, estimate, how = judge([r for r in records if r.get("seed", min(shared)) in shared])
            bounds = interval(estimate) if estimate and seeds > 1 else None
            word: Verdict = verdict(holds)
            if len({rounds(records, system) for system in needs}) > 1:
                word, how = "not tested", f"its systems were trained for different numbers of rounds; {how}"
            if seeds < ENOUGH_SEEDS:
                word, how = "not tested", f"{seeds} of the {ENOUGH_SEEDS} seeds that a verdict takes; {how}"
            made.append(Claim(number, text, place, measured, bounds, word, how))
    return made


def table(records: list[Record]) -> str:
    """Every system at every α: goals kept, distance to the optimum's goal shares, gap to the optimal objective; as Markdown."""
    have = [s for s in (*SYSTEMS, *EXTRAS) if agents(records, s, ALPHAS[0])]
    parts: dict[str, Callable[[str, float], str]] = {
        "Agents that keep all three goals, by `sample`": lambda s, a: f"{goals_kept(records, s, a):.0%}",
        "The same of the amortised policy, by `amortized`": lambda s, a: (
            f"{goals_kept(records, s, a, 'amortized'):.0%}"
        ),
        "Total variation of goal shares to the optimum's by `sample`, mean over agents": lambda s, a: (
            f"{over_agents(records, s, a, lambda r: total_variation(r, optimum(records, a))).mean():.3f}"
        ),
        "Gap J* − J(π) by `sample`, with a 95 % t interval": lambda s, a: with_half(gap(records, s, a)),
        "Gap of the amortised policy, by `amortized`": lambda s, a: with_half(gap(records, s, a, "amortized")),
    }
    trained = "; ".join(f"{s} {rounds(records, s):,}, {len(agents(records, s, ALPHAS[0]))}" for s in have)
    text = f"Rounds of four steps and one update that each was trained for, and seeds: {trained}.\n\n"
    for title, cell in parts.items():
        rows = [[s, *(cell(s, a) for a in ALPHAS)] for s in have if s == AMORTIZED or "amortised" not in title]
        text += f"{title}:\n\n{markdown(['', *(f'α = {a:g}' for a in ALPHAS)], rows)}\n"
    best = ", ".join(f"{optimum(records, a)['value']:.2f}" for a in ALPHAS)
    return f"{text}J* of the exact optimum at α = {', '.join(f'{a:g}' for a in ALPHAS)}: {best}.\n"


def with_half(estimate: Estimate) -> str:
    """The mean and half its interval."""
    return f"{estimate.value:.2f} ± {estimate.high - estimate.value:.2f}"


Judgement = tuple[bool, str, Estimate | None, str]


def _goals(records: list[Record]) -> Judgement:
    judged = [a for a in ALPHAS if min(optimum(records, a)["shares"][:-1]) > MODE]
    have = [s for s in SYSTEMS if agents(records, s, ALPHAS[0])]
    kept = {s: {a: goals_kept(records, s, a) for a in judged} for s in have}
    always = all(kept[s][a] >= 0.95 for s in (S2AC, SQL) for a in judged)
    late = all(kept[s][judged[0]] < 0.95 <= kept[s][judged[-1]] for s in (SAC, SAC_NF))
    text = "; ".join(f"{s} " + " ".join(f"{kept[s][a]:.0%}" for a in judged) for s in have)
    if AMORTIZED in have:
        shares = " ".join(f"{goals_kept(records, AMORTIZED, a, 'amortized'):.0%}" for a in judged)
        text += f"; S²AC(φ,θ,ψ) by its amortised network {shares}"
    how = (
        f"share of agents that end in each goal in over {MODE:.0%} of their episodes, at α = {', '.join(f'{a:g}' for a in judged)}; "
        "by `sample` unless said otherwise, which for S²AC(φ,θ,ψ) is its sampler"
    )
    return (
        always and late,
        text,
        None,
        how
        + "; holds if at least 95 % everywhere for S²AC and SQL, and for SAC and SAC-NF at the highest α and not at the lowest",
    )


def _left(records: list[Record]) -> Judgement:
    moved = {s: change(records, s, lambda r: left_share(r["sample"]["shares"])) for s in (S2AC, SAC_NF, SQL)}
    best = [left_share(optimum(records, a)["shares"]) for a in ALPHAS]
    text = (
        f"{moved[S2AC]} for {S2AC}; {moved[SAC_NF]} for SAC-NF; {moved[SQL]} for SQL; the optimum's share: "
        + " ".join(f"{share:.2f}" for share in best)
    )
    holds = moved[S2AC].low > 0 and moved[SAC_NF].low > 0 and not moved[SQL].low > 0
    return holds, text, moved[S2AC], "share of left goals among reached ones, highest α minus lowest, paired by seed"


def _wall(records: list[Record]) -> Judgement:
    def share(record: Record) -> float:
        return record["sample"]["wall_reached"]

    moved = change(records, S2AC, share)
    steps = {pair: change(records, S2AC, share, pair) for pair in pairwise(ALPHAS)}
    fallen = {pair: step for pair, step in steps.items() if step.high < 0}
    ours = " ".join(f"{over_agents(records, S2AC, a, share).mean():.2f}" for a in ALPHAS)
    best = " ".join(f"{optimum(records, a)['wall_reached']:.2f}" for a in ALPHAS)
    text = f"{moved}; by α: {ours}, the optimum's: {best}" + "".join(
        f"; from α = {low:g} to {high:g} it falls: {step}" for (low, high), step in fallen.items()
    )
    how = (
        "share that reaches a goal after hitting the wall, highest α minus lowest, paired by seed; "
        "holds if above 0, and if from no α to the next one the share falls significantly"
    )
    return moved.low > 0 and not fallen, text, moved, how


def _smooth(records: list[Record]) -> Judgement:
    first = change(records, S2AC, lambda r: float(np.log(r["smoothness"][0])))
    second = change(records, S2AC, lambda r: float(np.log(r["smoothness"][1])))
    best = "; ".join(" ".join(f"{optimum(records, a)['smoothness'][m]:.1f}" for a in ALPHAS) for m in (0, 1))
    text = f"log M1 changes by {first}, log M2 by {second}; M1 and M2 of Q* by α: {best}"
    return (
        first.high < 0 and second.high < 0,
        text,
        first,
        "mean absolute gradient and Hessian of Q, highest α against lowest",
    )


def _start(records: list[Record]) -> Judgement:
    def wider(record: Record) -> float:
        at_d, at_f = np.array(record["trend"])[-1, 3], np.array(record["trend"])[-1, 5]
        return float(np.mean(at_d[2:]) - np.mean(at_f[2:]))

    def towards(record: Record) -> float:
        return float(np.array(record["trend"])[-1, 5, 0])

    spread, move = (mean_over_alphas(records, S2AC, number) for number in (wider, towards))
    text = f"σ_θ(s_d) − σ_θ(s_f) = {spread}; x of μ_θ(s_f) = {move}"
    return (
        spread.low > 0 and move.low > 0,
        text,
        spread,
        "the start's std at the state between the goals and next to one, mean over α",
    )


def _entropy(records: list[Record]) -> Judgement:
    x, y = np.meshgrid(MAP, MAP, indexing="ij")
    goals = np.array([(5, 0), (-4, 3), (-4, -3)])
    near = (np.linalg.norm(np.stack([x, y], -1)[..., None, :] - goals, axis=-1) < 1.5).any(-1)
    left, right = (x < -0.5) & (np.abs(x) < 4), (x > 0.5) & (np.abs(x) < 4)

    def differences(record: Record) -> tuple[float, float]:
        found = np.array(record["entropy_map"]).reshape(x.shape)
        return found[left].mean() - found[right].mean(), found[near].mean() - found[~near].mean()

    sides = mean_over_alphas(records, S2AC, lambda r: differences(r)[0])
    goal = mean_over_alphas(records, S2AC, lambda r: differences(r)[1])
    best = [differences(optimum(records, a)) for a in ALPHAS]
    text = f"left minus right {sides}; near goals minus elsewhere {goal}; the optimum's: " + "; ".join(
        f"{a:.2f}, {b:.2f}" for a, b in best
    )
    return (
        sides.low > 0 and goal.high < 0,
        text,
        sides,
        "entropy of the true action law on a grid of states, mean over α",
    )


def _amortized(records: list[Record]) -> Judgement:
    def worse(record: Record) -> float:
        sampled = record["sample"]["objective"]
        return (record["amortized"]["objective"] - sampled) / abs(sampled)

    def weaker(record: Record) -> float:
        return record["amortized"]["wall_reached"] - record["sample"]["wall_reached"]

    relative, walls = (mean_over_alphas(records, AMORTIZED, number) for number in (worse, weaker))
    text = f"objective differs by {relative} of the sampled one's; share past the wall by {walls}"
    return (
        relative.low > -0.05 and walls.low > -0.1,
        text,
        relative,
        "amortised minus sampled actions of the same agents, mean over α; holds if the objective is less than 5 % worse and the share past the wall less than 0.1 lower",
    )


def _steps(records: list[Record]) -> Judgement:
    def gaps(system: str) -> np.ndarray:
        return np.mean([over_agents(records, system, a, lambda r: r["sample"]["gap"]) for a in ALPHAS], axis=0)

    few, many = (t_interval(gaps(system) - gaps(S2AC)) for system in (PHI_FEW, PHI))
    text = f"S²AC(φ)'s gap is larger than S²AC(φ,θ)'s with 5 steps by {few} with 3 steps and by {many} with 10"
    how = "gap to the optimum, mean over α, paired by seed; holds if the first is above 0 and the second not below"
    return few.low > 0 and not many.high < 0, text, few, how


CLAIMS = {
    4: (
        "S²AC and SQL reach all three goals at every α, SAC and SAC-NF only at large α",
        "section 4.2",
        (S2AC, SAC, SQL, SAC_NF),
        _goals,
    ),
    5: (
        "with α the share of left goals grows for S²AC and SAC-NF, not for SQL",
        "figure 6",
        (S2AC, SAC_NF, SQL),
        _left,
    ),
    6: ("after hitting the obstacle, the share that still reaches a goal grows with α", "figure 7", (S2AC,), _wall),
    7: ("larger α gives a smoother Q", "appendix, M1 and M2", (S2AC,), _smooth),
    8: ("σ_θ is larger at the multimodal state, and μ_θ moves to the near goal", "appendix", (S2AC,), _start),
    9: ("entropy is higher on the left than on the right, and falls near goals", "appendix", (S2AC,), _entropy),
    10: ("the amortised policy performs and resists as the sampled one", "section 4.2", (AMORTIZED,), _amortized),
    11: ("S²AC(φ,θ) needs fewer steps than S²AC(φ)", "section 4.2", (S2AC, PHI, PHI_FEW), _steps),
}
