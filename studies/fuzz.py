"""Does every reader refuse damaged files in words? Each reads a valid file, and then mutations of it.

    python -m studies.fuzz                              10,000 mutations for each reader
    python -m studies.fuzz --files 100 umb data.npz     100 for each of these
    python -m studies.fuzz --seed 17 umb --files 1      one again

A mutation changes bytes, cuts the file, repeats a part, or puts a token in that has made trouble elsewhere. A reader
may return something, or raise an error of plumdp within ten seconds of work. A line has the reader, the seed and what
it did otherwise; the exit code is 1 if there is such a line.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import signal
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import plumdp
from plumdp.base.errors import Misuse
from plumdp.base.json_values import digest
from plumdp.cli import load
from plumdp.cli.commands import COMMANDS
from plumdp.cli.errors import FILE
from plumdp.cli.parameters import read_defaults
from plumdp.data.raw_logs import write_events
from plumdp.model.missions.hoa import read_hoa
from plumdp.reporting.read import explain_result
from plumdp.result.data_file import read_data
from plumdp.result.folder import CERTIFICATE, digest_of_content
from plumdp.verifying.verify import look_again, verify

SECONDS = 10  # of the processor
TOKENS = (
    *(b"1e9999999999", b"9" * 5000, b"-1", b"18446744073709551616", b"NaN", b"null", b"[]", b"{}", b'"', b"\x00"),
    *(b"\xff\xfe", b"[" * 2000, b"\n", b"1/0", b"\x1b[2J", b"true", b"4294967296", b"<a>", b"0.5", b"e"),
)

Reader = tuple[bytes, str, Callable[[Path], object]]  # a valid file, its name, and what reads it


def mutated(content: bytes, rng: random.Random) -> bytes:
    """Return a file with one to three changes."""
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(changed) + 1)
        end = min(len(changed), at + rng.choice((1, 2, 8, 100)))
        match rng.randrange(6):
            case 0:
                changed[at:end] = rng.randbytes(end - at)
            case 1 if at < len(changed):
                changed[at] ^= 1 << rng.randrange(8)
            case 2:
                del changed[at : rng.choice((end, len(changed)))]
            case 3:
                changed[at:at] = changed[at:end]
            case 4:
                changed[at:end] = rng.choice(TOKENS)
            case _:
                changed[at:at] = rng.choice(TOKENS)
    return bytes(changed)


def problem(read: Callable[[Path], object], file: Path) -> str:
    """Return what a reader does with a file that it should not do, or nothing."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"it took more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read(file)
    except Misuse:
        return ""
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return ""


def readers(folder: Path) -> Mapping[str, Reader]:
    """Return all readers, each with a small file."""
    study = plumdp.case_study("betting:5")
    model = study.model
    counts = plumdp.simulate(model, study.true_point, 200, rng=1, max_steps=6)
    learned = plumdp.learn(model, counts, objectives=[study.objective])
    certificate = plumdp.conclude(learned, study.objective)
    result = folder / "result"
    witness = plumdp.decisions.make_witness(learned, certificate)
    certificate.save(result, model=model, counts=counts, witness=witness)
    plumdp.write_counts(counts, folder / "counts.parquet")
    known = plumdp.exchange.interval_model(learned)
    for name in ("model.umb", "model.drn"):
        plumdp.exchange.write_interval_model(known, folder / name)
    for name in ("log.csv", "log.json", "log.parquet"):
        plumdp.data.write_runs(model, study.true_point, 20, folder / name, rng=1, max_steps=6)
    (folder / "log.xes").write_text(f"<log>{f'<trace>{_EVENT}{_EVENT}</trace>' * 3}</log>")
    (folder / "spec.hoa").write_text(_HOA)
    (folder / FILE).write_text('column = ["episode=case"]\n[certify]\nconfidence = 0.9\noutput = "policy.csv"\n')
    states = np.ones(3, dtype=np.bool_)
    read_log = partial(plumdp.read_log, model, on_unmatched="report")
    plain: Mapping[str, Callable[[Path], object]] = {
        "log.csv": read_log,
        "log.json": read_log,
        "log.parquet": read_log,
        "counts.parquet": partial(plumdp.read_counts, model),
        "log.xes": lambda file: write_events(str(file), os.devnull),
        "model.umb": plumdp.exchange.read_interval_model,
        "model.drn": plumdp.exchange.read_interval_model,
        "spec.hoa": lambda file: read_hoa(file, lambda _: states, 3, is_max=True),
        FILE: _read_defaults,
    }
    inside = {name: partial(_read_result, result, name) for name in (CERTIFICATE, "witness.json", "data.npz")}
    arrays = dict(np.load(result / "data.npz"))
    with tarfile.open(folder / "model.umb") as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    return {
        **{name: ((folder / name).read_bytes(), name, read) for name, read in plain.items()},
        **{name: ((result / name).read_bytes(), name, read) for name, read in inside.items()},
        "data.npz:about": (arrays["about"].tobytes(), "about.json", partial(_read_about, arrays)),
        "model.umb:index": (members["index.json"], "index.json", partial(_read_index, members)),
    }


_EVENT = '<event><string key="concept:name" value="go"/><date key="time:timestamp" value="2024-01-01"/></event>'
_HOA = """HOA: v1
States: 2
Start: 0
AP: 1 "a"
acc-name: Buchi
Acceptance: 1 Inf(0)
--BODY--
State: 0 {0}
[0] 0
[!0] 1
State: 1
[t] 1
--END--
"""


def _read_defaults(file: Path) -> None:
    with chdir(file.parent):
        options = {name[2:]: each for each in load("certify").params for name in each.opts if name.startswith("--")}
        read_defaults("certify", list(COMMANDS), options)


def _read_result(result: Path, name: str, file: Path) -> None:
    """Read a result with another file of this name, and hashes that fit, as whoever forges one would write them."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for each in result.iterdir():
            (folder / each.name).write_bytes((file if each.name == name else each).read_bytes())
        try:
            content = json.loads((folder / CERTIFICATE).read_bytes())
            content["hashes"][name] = digest((folder / name).read_bytes())
            content["hashes"][CERTIFICATE] = digest_of_content(content)
            (folder / CERTIFICATE).write_text(json.dumps(content))
        except (ValueError, TypeError, LookupError, RecursionError):
            pass  # it is not JSON any more
        look_again(folder, verify(folder))
        str(plumdp.read_result(folder))
        explain_result(folder, parts=["policy"])


def _read_about(arrays: Mapping[str, np.ndarray], file: Path) -> None:
    packed = file.with_suffix(".npz")
    everything: Any = {**arrays, "about": np.frombuffer(file.read_bytes(), np.uint8)}
    np.savez(packed, **everything)
    read_data(packed)


def _read_index(members: Mapping[str, bytes], file: Path) -> None:
    packed = file.with_suffix(".umb")
    with tarfile.open(packed, "w") as archive:
        for name, content in {**members, "index.json": file.read_bytes()}.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    plumdp.exchange.read_interval_model(packed)


def fuzz(names: Sequence[str], n: int, seed: int = 0) -> list[str]:
    """Return what readers did that they should not do, with n mutations for each."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        known = readers(Path(place))
        for name in names or known:
            content, called, read = known[name]
            file = Path(place) / "mutated" / called
            file.parent.mkdir(exist_ok=True)
            for number in range(seed - 1, seed + n):
                rng = random.Random(f"{name} {number}")
                file.write_bytes(content if number < seed else mutated(content, rng))
                if said := problem(read, file):
                    found.append(f"{name}, --seed {number}: {said}")
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    found = fuzz(given.readers, given.files, given.seed)
    print("\n".join(found) or "all readers read, or refused in words")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
