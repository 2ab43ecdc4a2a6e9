"""Checks a result from its counts to its sentence, layer by layer, with exact fractions and ball arithmetic alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from flint import ctx

from .bets import BetStage, check_bets, half_spaces_from_bets, stages_of
from .bracket import Side, check_brackets
from .chain import Chain, read_chain
from .claim import (
    CERTIFICATE,
    WITNESS,
    Claim,
    about,
    check_budget,
    check_guarantee,
    read_files,
    sentence_of,
    spent_by_set,
    trusted_words,
)
from .comparison import check_same_question
from .counts import CountedRows, read_data
from .evidence import Likelihood, read_likelihood
from .half_spaces import ProvedHalfSpace, check_inside, half_spaces_from_space, half_spaces_from_tangents
from .intervals import ONCE, check_once, half_spaces_from_intervals
from .laws import check_laws, check_points
from .pieces import Piece, read_pieces, widest
from .reading import Part, Rejected, limited_work, require
from .renewed import check_sizes
from .report import CHAIN, COUNTS, SETTINGS, SPACE, Report
from .values import check_functions, read_functions

_BITS = 128

PAID = "the sums of rewards: that values lie within their ranges, with the means of the chain, wherever a step leads"


def verify(folder: Path | str) -> Report:
    """Return which layers of the proof in the folder of a result hold."""
    report = Report()
    with exactly():
        try:
            with report.layer("files"):
                claim, witness = read_files(Path(folder))
                here = sorted(file.name for file in Path(folder).iterdir())
                report.unchecked = [name for name in here if name not in (CERTIFICATE, WITNESS)]
            check_claim(claim, witness, report)
        except Rejected as error:
            report.broken = error
        except RecursionError:
            report.broken = Rejected("something is nested too deeply", "counts")
    return report


@contextmanager
def exactly() -> Iterator[None]:
    """Calculate with as many bits as proofs need, here and nowhere else."""
    bits, ctx.prec = ctx.prec, _BITS
    try:
        yield
    finally:
        ctx.prec = bits


def check_claim(claim: Claim, witness: Part, report: Report) -> None:
    """Go through all layers after that of the files."""
    if "kind" in witness:
        raise Rejected(f"verify does not know witnesses of the kind {witness['kind'].text()[:40]!r}", "files")
    report.objective = about(claim)
    report.trusted = [CHAIN, SPACE, COUNTS, SETTINGS, *trusted_words(claim)]
    with limited_work():
        proved = check_bracket(claim, witness, report)
    with report.layer("sentence"):
        report.sentence = sentence_of(proved)


def check_bracket(claim: Claim, witness: Part, report: Report) -> Claim:
    """Return the claim that is proved by a set of parameters, and functions of them."""
    with report.layer("budget"):
        uses_main = "main" in [each["data"].text() for each in witness["set"]["likelihoods"]]
        uses_order, is_fixed = uses_main or witness["set"]["bets"].value is not None, _needs_fixed(witness)
        report.assumed += check_guarantee(claim, witness["data"], uses_order=uses_order, is_fixed=is_fixed)
        check_budget(claim, witness, spent_by_set(witness))
    with report.layer("counts"):
        data = read_data(witness)
        parts = policies_of(claim, witness)
        chains = [read_chain(part["chain"], data.names) for part in parts]
        for other in parts[1:]:
            check_same_question(witness["chain"], other["chain"])
        report.trusted += _trusted(claim, witness, data)
    with report.layer("bets"):
        bets, space, stages = witness["set"]["bets"], witness["set"]["space_law"], list[BetStage]()
        check_laws(witness["set"], data)
        if bets.value is not None:
            check_bets(bets, data)
            check_points(bets, data, space)
            stages = stages_of(bets, data)
            check_sizes(bets, data, space, stages)
    with report.layer("set"):
        likelihoods = [read_likelihood(part, data) for part in witness["set"]["likelihoods"]]
        half_spaces = half_spaces_of(witness, data, likelihoods, stages)
        intervals = witness["set"]["intervals"]
        rests = [check_once(intervals, data, chain) for chain in chains if intervals.value is not None]
        report.trusted += [ONCE] if any(rests) else []
        pieces = list(read_pieces(witness["pieces"], data, half_spaces))
        check_inside(witness["pieces"]["root"], data, half_spaces, likelihoods)
    with report.layer("values"):
        known = {each.item.place: _sides(each, chains, data) for each in pieces if each.has_values}
    with report.layer("bracket"):
        proved = []
        for piece in pieces:
            if piece.is_whole:
                require(piece.functions in known, f"{piece.item.place}: it has no functions")
                sides = [each.on(piece.halvings) for each in known[piece.functions]]
                proved.append(check_brackets(piece.item["brackets"], sides, piece.cube, claim))
        return widest(proved)


def _sides(piece: Piece, chains: Sequence[Chain], data: CountedRows) -> list[Side]:
    """Return the functions of a part of the cube, after a proof that they bound values there."""
    part, sides = piece.item["values"], []
    require(len(part) == len(chains), f"{part.place}: not one for each policy")
    for item, chain in zip(part, chains, strict=True):
        sides.append(Side(chain, read_functions(item, chain, piece.cube.dimension)))
        check_functions(item, chain, piece.cube, sides[-1].functions)
    return sides


def _needs_fixed(witness: Part) -> bool:
    """Return whether some part of the set needs numbers of trials, or of runs, that were fixed."""
    intervals = witness["set"]["intervals"]
    if intervals.value is None or intervals["method"].text() == "beta-binomial":
        return False
    is_independent = witness["data"]["sampling"].text() == "independent"
    return is_independent or any(item["once"].truth() for item in intervals["list"])


def _trusted(claim: Claim, witness: Part, data: CountedRows) -> Iterator[str]:
    """Yield what is trusted of some kinds of data only, after checks of what it is said of."""
    if data.rewards:
        yield PAID


def policies_of(claim: Claim, witness: Part) -> list[Part]:
    """Return the parts with a chain and its values: that of the policy, and of the one that it is compared with."""
    require("comparison" not in witness or claim.comparison is not None, "the certificate compares no policies")
    return [witness] if claim.comparison is None else [witness, witness["comparison"]]


def half_spaces_of(
    witness: Part, data: CountedRows, likelihoods: Sequence[Likelihood], stages: Sequence[BetStage]
) -> list[ProvedHalfSpace]:
    """Return the half-spaces of space, intervals, bets and likelihoods, in the order that multipliers use."""
    part = witness["set"]
    drawn = half_spaces_from_intervals(part["intervals"], data) if part["intervals"].value is not None else ()
    bets = half_spaces_from_bets(part["bets"], data, stages) if part["bets"].value is not None else ()
    tangents = half_spaces_from_tangents(part["tangents"], data, likelihoods)
    return [*half_spaces_from_space(witness, data.names), *drawn, *bets, *tangents]
