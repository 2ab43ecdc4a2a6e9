"""Writes results where ``--output`` says: to a folder, or to a file for other tools, by what its name ends in."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import plumdp
from plumdp.base.errors import DataError
from plumdp.cli.options import Options
from plumdp.model.text import number_of

if TYPE_CHECKING:
    from plumdp.learning.learned import Learned
    from plumdp.relaxation.intervals import IntervalModel
    from plumdp.result.certificate import Certificate


def is_model_file(path: Path | None) -> bool:
    """Return whether a file takes an interval model, by its ending."""
    from plumdp.exchange.write_intervals import INTERVAL_WRITERS

    return path is not None and path.suffix.lower() in INTERVAL_WRITERS


def _is_file(path: Path) -> bool:
    """Return whether a name is that of a file for other tools, and not of a folder."""
    from plumdp.exchange.policy_files import POLICY_WRITERS

    return is_model_file(path) or path.suffix.lower() in POLICY_WRITERS


def require_output(given: Options) -> None:
    """Refuse a folder or file that cannot be written, or is neither, before any work is done."""
    from plumdp.exchange.policy_files import POLICY_WRITERS
    from plumdp.exchange.write_intervals import INTERVAL_WRITERS
    from plumdp.result.folder import require_folder

    if given.witness and (given.output is None or _is_file(given.output)):
        raise DataError("--witness: name with --output the folder that the witness is written to")
    if given.output is not None and not _is_file(given.output):
        if re.fullmatch(r"\.[A-Za-z]\w{0,4}", given.output.suffix) and not given.output.is_dir():
            endings = ", ".join((*POLICY_WRITERS, *INTERVAL_WRITERS))
            raise DataError(
                f"--output {given.output}: name a folder, without such an ending, or a file that ends in {endings}; "
                "plumdp report makes pages of folders"
            )
        require_folder(given.output, force=given.force)
    require_files(given)


def require_files(given: Options) -> None:
    """Refuse files that cannot be written, or whose names say nothing of what they would be."""
    if given.output is not None and _is_file(given.output):
        require_new(given.output, force=given.force)


def require_new(path: Path, *, force: bool) -> None:
    """Refuse a file that cannot be written, or that is there already unless it may be replaced."""
    from plumdp.result.folder import require_file

    require_file(path)
    if path.exists() and not force:
        raise DataError(f"{path} already exists; choose another file, or replace it with --force")


def write_results(given: Options, learned: Learned, certificates: Sequence[Certificate]) -> None:
    """Write certificates and what they were concluded from to a folder, or what a file takes of one."""
    from plumdp.result import folder

    is_file = given.output is not None and _is_file(given.output)
    if is_file:
        if len(certificates) > 1:
            raise DataError(f"{given.output}: a file is about one property; ask one, or name a folder")
        _write_files(given, learned, certificates[0].policy)
    if given.output is None or is_file:
        return
    is_on_disk = learned.model.graph.levels is not None  # too large to be kept, and there is nothing to explain
    # what counts do not show, such as what whole runs earned, is explained now or never
    is_explained = is_on_disk or any(question.runs is not None for question in learned.questions)
    results = [(each, plumdp.explain(learned, each) if is_explained else None) for each in certificates]
    data = None if is_on_disk else (learned.model, learned.counts)
    witnesses = [witness_of(learned, each) for each in certificates] if given.witness else []
    folder.write_results(results, given.output, data=data, witnesses=witnesses, force=given.force)


def witness_of(learned: Learned, certificate: Certificate) -> str:
    """Return the witness of a certificate, or nothing after a warning on standard error why it has none."""
    try:
        return plumdp.decisions.make_witness(learned, certificate)
    except DataError as error:
        print(f"warning: {error}", file=sys.stderr)
        return ""


def _write_files(given: Options, learned: Learned, policy: plumdp.PolicyTable) -> None:
    """Write intervals of what was learned, or the policy."""
    from plumdp.result.printing import percent

    written = []
    if is_model_file(given.output):
        model = plumdp.exchange.interval_model(learned)
        claim = f"the true probabilities lie in the intervals with confidence {percent(1 - learned.error)}"
        claim = "without a guarantee" if learned.bounds.guarantee == "none" else claim
        claim = f"Model rejected: {learned.conflict}" if learned.conflict is not None else claim
        written.append(f"{write_model(model, given.output)}; {claim}")
    elif given.output is not None:
        written.append(write_policy(policy, given.output))
    if not given.json:
        print("\n".join(written))


def write_model(model: IntervalModel, file: Path | None) -> str:
    """Write an interval model, and say so."""
    assert file is not None
    plumdp.exchange.write_interval_model(model, file)
    return f"{file}: interval model, {number_of(model.graph.n_states, 'state')}"


def write_policy(policy: plumdp.PolicyTable, file: Path) -> str:
    """Write a policy to a file, and say so."""
    plumdp.exchange.write_policy(policy, file)
    is_tree = file.suffix.lower() in (".py", ".rules")
    size = f", {policy.tree.size}, checked in every state" if is_tree else ""
    return f"{file}: policy, {number_of(len(policy), 'state')}{size}"
