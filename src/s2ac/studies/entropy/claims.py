"""The paper's claims 1 to 3 about the entropy, and the table of which entropy each form's number is, from the study's records."""

from typing import Any

import numpy as np

from s2ac.studies.entropy.experiments import BANDWIDTHS, GROWTH, SIZES
from s2ac.studies.entropy.targets import FIGURE_ENTROPY
from s2ac.studies.entropy.which import STUDIED, TABLE
from s2ac.studies.statistics import t_interval
from s2ac.studies.study import Claim, Record, interval, markdown, verdict


def select(records: list[Record], study: str, **fields: Any) -> list[Record]:
    """The records of one study whose fields have the given values."""
    return [r for r in records if r["study"] == study and all(r[name] == value for name, value in fields.items())]


def decide(records: list[Record]) -> list[Claim]:
    """Claims 1 to 3, from whatever records there are."""
    return [_claim_samplers(records), _claim_bandwidth(records), _claim_growth(records)]


def _not_tested(number: int, claim: str, place: str) -> Claim:
    return Claim(number, claim, place, "no records", None, "not tested", "the runs it needs are missing")


def _claim_samplers(records: list[Record]) -> Claim:
    claim, place = "SVGD recovers the entropy 3.41 of the Gaussian; SGLD, DLD and HMC do not", "figure 4a"
    found = {r["sampler"]: t_interval(np.array(r["entropy"])) for r in select(records, "samplers")}
    if len(found) < 4:
        return _not_tested(1, claim, place)
    errors = {name: abs(estimate.value - FIGURE_ENTROPY) for name, estimate in found.items()}
    holds = errors["SVGD"] < 0.03 and min(error for name, error in errors.items() if name != "SVGD") > 0.1
    measured = ", ".join(f"{name} {estimate.value:.3f}" for name, estimate in found.items())
    return Claim(
        1, claim, place, measured, interval(found["SVGD"]), verdict(holds),
        f"holds if SVGD's mean over seeds is within 0.03 of {FIGURE_ENTROPY:.4f} and the others' are off by over 0.1",
    )  # fmt: skip


def _claim_bandwidth(records: list[Record]) -> Claim:
    claim, place = "bandwidth 0.1 is wrong, 100 has not converged, 3 to 7 are good", "figure 4b"
    found = {r["bandwidth"]: t_interval(np.array(r["entropy"])) for r in select(records, "bandwidth", count=200)}
    if set(BANDWIDTHS) - set(found):
        return _not_tested(2, claim, place)
    errors = {width: abs(estimate.value - FIGURE_ENTROPY) for width, estimate in found.items()}
    holds = errors[0.1] > 1 and errors[100.0] > 0.5 and max(errors[width] for width in (3.0, 5.0, 7.0)) < 0.1
    measured = ", ".join(f"σ={width:g}: {estimate.value:.3f}" for width, estimate in found.items())
    return Claim(
        2, claim, place, measured, interval(found[0.1]), verdict(holds),
        "200 particles; holds if σ = 0.1 is off by over 1, σ = 100 by over 0.5, and σ = 3, 5, 7 by less than 0.1; "
        "interval: σ = 0.1",
    )  # fmt: skip


def _claim_growth(records: list[Record]) -> Claim:
    claim = "the estimate grows with the number of components and with the spread, also at m = L = 10"
    place = "figures 4c and 12"
    lines, holds = [], True
    for kind, variants in GROWTH.items():
        for variant in variants:
            for count, _ in SIZES:
                found = select(records, "growth", kind=kind, variant=variant, count=count)
                if len(found) < 2:
                    return _not_tested(3, claim, place)
                curves = np.array([r["entropy"] for r in sorted(found, key=lambda r: r["value"])])  # [values, seeds]
                rises = [t_interval(step) for step in np.diff(curves, axis=0)]
                growing, falling = sum(rise.low > 0 for rise in rises), sum(rise.high < 0 for rise in rises)
                if variant == "printed":
                    holds &= falling == 0 and growing > len(rises) / 2
                lines.append(f"{kind}, {variant}, m = {count}: {growing} of {len(rises)} steps rise, {falling} fall")
    return Claim(
        3, claim, place, "; ".join(lines), None, verdict(holds),
        "each step from one value to the next is compared seed by seed; holds if in every curve with the printed step "
        "size and bandwidth no step falls and most rise (95 % t intervals). On the mixtures the printed step breaks "
        "ε‖J‖ ≪ 1; the curves with a small step are beside it",
    )  # fmt: skip


def which_table(records: list[Record]) -> str:
    """Markdown: for each row of `TABLE`, every form's number beside the true entropy of one of its particles."""
    lines = []
    for setting in TABLE:
        found = {r["form"]: r for r in select(records, "which", setting=setting._asdict())}
        if set(found) == set(STUDIED):
            cells = [
                f"{r['number']['value']:.3f} / {r['truth']['value']:.3f}" for r in (found[form] for form in STUDIED)
            ]
            lines.append([setting.label, f"{found['all']['start']:.2f}", *cells])
    return markdown(["setting", "start", *(f"{form}: number / truth" for form in STUDIED)], lines)
