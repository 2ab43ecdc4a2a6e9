"""Does every reader refuse damaged files in words? Each reads a valid file, and then mutations of it.

    python -m studies.fuzz                              10,000 mutations for each reader
    python -m studies.fuzz --files 100 umb data.npz     100 for each of these
    python -m studies.fuzz --seed 17 umb --files 1      one again
    python -m studies.fuzz --guided 600                 ten minutes for each, by mutations that run other lines
    python -m studies.fuzz --files 0 umb --kept FOLDER  the files that were kept, again

A mutation changes bytes, cuts the file, repeats a part, or puts a token in that has made trouble elsewhere. With
``--guided`` Atheris (``pip install atheris``) mutates, and keeps in ``FOLDER/READER`` what ran lines that none had run
before; the next run begins with that. A reader may return something, or raise an error of plumdp within ten seconds of
work. A line has the reader, the seed and what it did otherwise, and the file is kept as ``FOLDER/READER/fault-…``; the
exit code is 1 if there is such a line.
"""

from __future__ import annotations

import argparse
import gc
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import chdir
from functools import cache, partial
from pathlib import Path
from shutil import copy
from types import FunctionType
from typing import Any

import numpy as np

import plumdp
from plumdp.base.errors import Misuse
from plumdp.base.json_values import digest
from plumdp.cli import load
from plumdp.cli.commands import COMMANDS
from plumdp.cli.errors import FILE
from plumdp.cli.parameters import read_defaults
from plumdp.data.text_formats import write_events
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


class TooLong(BaseException):
    """It is none of the errors that readers turn into words."""


def problem(read: Callable[[Path], object], file: Path) -> str:
    """Return what a reader does with a file that it should not do, or nothing."""

    def stop(*_: object) -> None:
        raise TooLong(f"it took more than {SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        read(file)
    except Misuse:
        return ""
    except (Exception, TooLong) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return ""


def readers(folder: Path) -> Mapping[str, Reader]:
    """Return all readers, each with a small file."""
    study = plumdp.case_study("betting:2")
    model = study.model
    counts = plumdp.simulate(model, study.true_point, 20, rng=1, max_steps=3)  # few: a result is read in 0.3 s
    learned = plumdp.learn(model, counts, objectives=[study.objective])
    certificate = plumdp.conclude(learned, study.objective)
    result = folder / "result"
    witness = plumdp.decisions.make_witness(learned, certificate)
    plumdp.write_result(certificate, result, model=model, counts=counts, witness=witness)
    plumdp.write_counts(counts, folder / "counts.parquet")
    known = plumdp.exchange.interval_model(learned)
    plumdp.exchange.write_interval_model(known, folder / "model.umb")
    copy(Path(__file__).parents[1] / "tests" / "models" / "robot.drn", folder / "model.drn")
    for name in ("log.csv", "log.json", "log.parquet"):
        plumdp.data.write_runs(model, study.true_point, 20, folder / name, rng=1, max_steps=6)
    (folder / "log.xes").write_text(f"<log>{f'<trace>{_EVENT}{_EVENT}</trace>' * 3}</log>")
    (folder / FILE).write_text('column = ["episode=case"]\n[certify]\nconfidence = 0.9\noutput = "policy.csv"\n')
    read_log = partial(plumdp.read_log, model, on_unmatched="report")
    plain: Mapping[str, Callable[[Path], object]] = {
        "log.csv": read_log,
        "log.json": read_log,
        "log.parquet": read_log,
        "counts.parquet": partial(plumdp.read_counts, model),
        "log.xes": lambda file: write_events(str(file), os.devnull),
        "model.umb": plumdp.exchange.read_interval_model,
        "model.drn": plumdp.exchange.read_interval_model,
        FILE: _read_defaults,
    }
    inside = {name: partial(_read_result, result, name) for name in (CERTIFICATE, "witness.json", "data.npz")}
    arrays = dict(np.load(result / "data.npz"))
    with tarfile.open(folder / "model.umb") as archive:
        members = {each.name: archive.extractfile(each).read() for each in archive}  # type: ignore[union-attr]
    return {
        **{name: ((folder / name).read_bytes(), name, read) for name, read in plain.items()},
        **{name: ((result / name).read_bytes(), name, read) for name, read in inside.items()},
        "data.npz-about": (arrays["about"].tobytes(), "about.json", partial(_read_about, arrays)),
        "model.umb-index": (members["index.json"], "index.json", partial(_read_index, members)),
    }


_EVENT = '<event><string key="concept:name" value="go"/><date key="time:timestamp" value="2024-01-01"/></event>'


def _read_defaults(file: Path) -> None:
    with chdir(file.parent):
        read_defaults("certify", list(COMMANDS), _options())


@cache
def _options() -> dict[str, Any]:
    return {name[2:]: each for each in load("certify").params for name in each.opts if name.startswith("--")}


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


def fuzz(names: Sequence[str], n: int, seed: int = 0, kept: Path | None = None) -> list[str]:
    """Return what readers did that they should not do, with n mutations for each; keep the files, if there is where."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        known = readers(Path(place))
        for name in names or known:
            content, _, read = known[name]
            file = _place(Path(place), known[name])
            for number in range(seed - 1, seed + n):
                rng = random.Random(f"{name} {number}")
                file.write_bytes(content if number < seed else mutated(content, rng))
                if said := problem(read, file):
                    found.append(f"{name}, --seed {number}: {said}")
                    if kept is not None:
                        _keep(kept / name, file.read_bytes())
    return found


def again(kept: Iterable[tuple[str, bytes]]) -> list[str]:
    """Return what readers did that they should not do, with files that were kept, each with the name of its reader."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        known = readers(Path(place))
        for name, content in kept:
            file = _place(Path(place), known[name])
            file.write_bytes(content)
            if said := problem(known[name][2], file):
                found.append(f"{name}, {digest(content)}: {said}")
    return found


def guided(name: str, seconds: int, kept: Path) -> None:
    """Mutate files such that they run other lines, keep those that do, print what went wrong, and exit."""
    import atheris

    place = Path(tempfile.mkdtemp())
    content, _, read = known = readers(place)[name]
    file = _place(place, known)
    file.write_bytes(content)
    read(file)  # so that all modules are there
    for each in gc.get_objects():
        module = getattr(each, "__module__", None) or ""
        if isinstance(each, FunctionType) and module.startswith("plumdp") and not module.endswith("kernels"):
            atheris.instrument_func(each)
    kept.mkdir(parents=True, exist_ok=True)
    (kept / "valid").write_bytes(content)
    tokens = place / "tokens"
    tokens.write_text("".join('"' + "".join(map("\\x{:02x}".format, token[:60])) + '"\n' for token in TOKENS))

    def one(mutation: bytes) -> None:
        file.write_bytes(mutation)
        if said := problem(read, file):
            print(f"{name}, {digest(mutation)}: {said}", flush=True)
            _keep(kept, mutation)

    limits = (f"-max_total_time={seconds}", f"-max_len={4 * len(content)}", "-timeout=60", "-rss_limit_mb=2048")
    atheris.Setup(["fuzz", str(kept), f"-dict={tokens}", f"-artifact_prefix={kept}/fault-", *limits], one)
    atheris.Fuzz()


def _place(folder: Path, reader: Reader) -> Path:
    """Return where the mutations for a reader are written."""
    file = folder / "mutated" / reader[1]
    file.parent.mkdir(exist_ok=True)
    return file


def _keep(folder: Path, content: bytes) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"fault-{digest(content)[:16]}").write_bytes(content)


def _guide_all(names: Sequence[str], seconds: int, kept: Path) -> list[str]:
    """Run each reader in a process of its own, which ends with its fuzzing; return the files that went wrong."""
    for name in names:
        command = [sys.executable, "-m", "studies.fuzz", name, "--kept", str(kept), "--guided", str(seconds)]
        subprocess.run(command, check=False)
    return [str(file) for name in names for file in (kept / name).glob("fault-*")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("readers", nargs="*")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--guided", type=int, metavar="SECONDS", default=0)
    parser.add_argument("--kept", type=Path, metavar="FOLDER", default=Path("fuzzed"))
    given = parser.parse_args(arguments)
    if given.guided and len(given.readers) == 1:
        guided(given.readers[0], given.guided, given.kept / given.readers[0])
    with tempfile.TemporaryDirectory() as place:
        names = given.readers or [*readers(Path(place))]
    if given.guided:
        found = _guide_all(names, given.guided, given.kept)
    else:
        kept = ((name, file.read_bytes()) for name in names for file in sorted((given.kept / name).glob("*")))
        found = again(kept) + fuzz(names, given.files, given.seed, given.kept)
    print("\n".join(found) or "all readers read, or refused in words")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
