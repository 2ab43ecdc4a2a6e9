"""Finds models in files, case studies and Python files, and the properties that come with them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from fractions import Fraction
from glob import glob
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeGuard

import plumdp
from plumdp.base.errors import DataError, ModelError
from plumdp.cli.errors import where_given

if TYPE_CHECKING:
    from plumdp.case_studies import CaseStudy
    from plumdp.model.parametric import ParametricMDP

_PROPERTY_FILES = (".props", ".pctl", ".prctl")


def complete_model(incomplete: str) -> list[str]:
    """Return case studies and model files that begin with a text, for the completion of the shell."""
    from plumdp.case_studies import case_study_names
    from plumdp.model.readers.read import READERS

    names = [name for name in case_study_names() if name.startswith(incomplete)]
    files = [file for file in glob(f"{incomplete}*") if Path(file).suffix in (*READERS, ".py") or Path(file).is_dir()]
    return names + sorted(files)


def load_source(model: str, constants: Mapping[str, str]) -> tuple[ParametricMDP, list[str]]:
    """Return a model, and the properties that come with it."""
    from plumdp.case_studies import case_study_names, is_case_study
    from plumdp.model.parametric import ParametricMDP

    file, _, name = model.rpartition(":") if ".py:" in model else (model, "", "")
    if file.endswith(".py"):
        found = _from_python(Path(file), name, constants)
        if isinstance(found, ParametricMDP):
            return found, read_properties(Path(file))
        return found.model, [found.objective.text] if found.objective.text else []
    if is_case_study(model):
        if constants:
            raise ModelError(f"{model}: a case study takes its sizes in its name, not as constants")
        study = plumdp.case_study(model)
        return study.model, [study.objective.text]
    path = Path(model)
    if not path.is_file() and not path.suffix:
        near = get_close_matches(model, case_study_names(), n=1)
        hint = f"did you mean {near[0]}?" if near else "try betting:50"
        raise ModelError(f"{model}: there is no such file, and no case study of this name ({hint})")
    return plumdp.read_model(path, constants=dict(constants)), read_properties(path)


def load_policy(
    policy: str, model: ParametricMDP, *, option: str = "--policy"
) -> plumdp.PolicyTable | Literal["practice"]:
    """Return the policy of a file or result, of a function in a Python file (rules.py:name), or that of a word."""
    from plumdp.model.policy import check_policy
    from plumdp.result.folder import CERTIFICATE, POLICY

    file, _, name = policy.rpartition(":") if ".py:" in policy else (policy, "", "policy")
    path = Path(file) / POLICY if (Path(file) / POLICY).is_file() else Path(file)  # the folder of a result
    is_result = path.is_file() and (path.parent / CERTIFICATE).is_file() and path.parent == Path(file)
    if is_result and plumdp.read_result(file).how.options.get("memory"):
        return plumdp.read_result(file, model).policy
    if path.is_file() and path.suffix.lower() == ".py":
        if not (place := where_given(option.removeprefix("--"))).startswith("--"):
            print(f"{place}: running {path}", file=sys.stderr)
        return _policy_of_function(path, name, model)
    if policy == "practice" and not path.exists():
        return "practice"
    if not path.is_file() and policy in policy_words(model):
        return plumdp.PolicyTable(model.graph, check_policy(model.graph, policy))
    if not path.is_file():
        raise DataError(f"{option} {policy}: there is no such file, and no action of this name")
    return plumdp.read_policy(model, path)


def policy_words(model: ParametricMDP) -> tuple[str, ...]:
    """Return the words that name a policy of a model."""
    return "practice", "uniform", *model.graph.action_names


def policy_names(*texts: str, words: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of policies in sentences: files without folders and endings, unless two are then the same.

    Files keep theirs if they would be called by a word that means another policy, such as that of an action.

    >>> policy_names("rules/at_bad.py", "practice"), policy_names("a/policy.csv", "b/policy.csv")
    (('at_bad', 'practice'), ('a/policy.csv', 'b/policy.csv'))
    """
    short = tuple(text.rpartition(":")[2] if ".py:" in text else Path(text).stem for text in texts)
    is_clear = all(name == text or name not in words for name, text in zip(short, texts, strict=True))
    return short if is_clear and len({*short}) == len(texts) else texts


def _policy_of_function(file: Path, name: str, model: ParametricMDP) -> plumdp.PolicyTable:
    function = getattr(_run(file), name, None)
    if not callable(function):
        raise DataError(f"--policy {file}: there is no function {name} in this file; name another as in {file}:NAME")
    try:
        with redirect_stdout(sys.stderr):
            return plumdp.PolicyTable.from_actions(model.graph, function)
    except DataError as error:
        raise DataError(f"{file}: {error}") from None


def read_properties(path: Path) -> list[str]:
    """Return the properties in a JANI file, or in the file beside a model file; one may go over several lines."""
    from plumdp.model.language.tokens import without_comments

    for suffix in _PROPERTY_FILES:
        file = path.with_suffix(suffix)
        if file.is_file():
            try:
                text = file.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError:
                raise ModelError(f"{file}: this is not a text in UTF-8; save it as UTF-8") from None
            return list(_split(without_comments(line) for line in text.splitlines()))
    if path.suffix.lower() == ".jani":
        from plumdp.model.readers.storm import jani_properties

        return jani_properties(path)
    return []


def _split(lines: Iterator[str]) -> Iterator[str]:
    """Yield lines, joined while a bracket is open or a name waits for its property."""
    so_far = ""
    for line in lines:
        so_far = f"{so_far} {line}".strip()
        is_open = sum(so_far.count(bracket) for bracket in "([{") > sum(so_far.count(bracket) for bracket in ")]}")
        if so_far and not is_open and not so_far.endswith((":", "[")):
            yield so_far.rstrip("; ")
            so_far = ""
    if so_far:
        yield so_far


def name_of(text: str) -> str:
    """Return the name of a property, or nothing.

    >>> name_of('"safe": Pmax=? [ F "goal" ]'), name_of('Pmax=? [ F "goal" ]')
    ('safe', '')
    """
    name, quote, rest = text.removeprefix('"').partition('"')
    return name if text.startswith('"') and quote and rest.lstrip().startswith(":") else ""


def chosen_properties(model: str, asked: Sequence[str], properties: Sequence[str]) -> list[str]:
    """Return the questions, with the property of the model instead of its name or number."""
    by_name = {name_of(text): text for text in properties if name_of(text)}
    by_number = {f"{number}": text for number, text in enumerate(properties, start=1)}
    chosen = []
    for text in asked:
        parts = [part.strip().strip('"') for part in text.split(",")]
        if not all(part.isidentifier() or part.isdecimal() for part in parts):
            chosen.append(text)
            continue
        for part in parts:
            if part not in by_name and part not in by_number:
                raise _no_property(model, part, by_name, len(properties))
            chosen.append(by_name.get(part) or by_number[part])
    return chosen


def _no_property(model: str, name: str, known: Mapping[str, str], n_properties: int) -> ModelError:
    if not known and not n_properties:
        return ModelError(f"--property {name}: no properties come with {model}; write the property itself")
    near = get_close_matches(name, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else ""
    names = (
        f"they are called {', '.join(known)}" if known else f"they have no names, but numbers from 1 to {n_properties}"
    )
    return ModelError(f"--property {name}: no property of {model} has this name{hint}; {names}")


def _from_python(file: Path, name: str, constants: Mapping[str, str]) -> ParametricMDP | CaseStudy:
    """Return the model that a name in a Python file stands for; a file with one model needs no name."""
    module = _run(file)
    known = [text for text, value in vars(module).items() if _is_model(value)]
    if not name and len(known) == 1:
        name = known[0]
    if not name:
        names = f"; it has {', '.join(known)}" if known else ""
        raise ModelError(
            f"{file}: say which model of the file is meant, as in {file}:{known[0] if known else 'NAME'}{names}"
        )
    if not hasattr(module, name):
        near = get_close_matches(name, [text for text in vars(module) if not text.startswith("_")], n=1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        raise ModelError(f"{file}: there is no {name} in this file{hint}; its models are {', '.join(known) or 'none'}")
    found = getattr(module, name)
    if inspect.isroutine(found):
        found = _called(file, name, found, constants)
    elif constants:
        raise ModelError(f"{file}:{name} is not a function, so that it takes no constants; leave out --constant")
    if not _is_model(found):
        kind = type(found).__name__
        raise ModelError(
            f"{file}:{name} is of type {kind}, not a ParametricMDP or CaseStudy, nor a function that returns one"
        )
    return found


def _is_model(value: object) -> TypeGuard[ParametricMDP | CaseStudy]:
    from plumdp.case_studies import CaseStudy
    from plumdp.model.parametric import ParametricMDP

    return isinstance(value, ParametricMDP | CaseStudy)


def _run(file: Path) -> ModuleType:
    """Run a Python file, with its folder on the path, and return its names."""
    if not file.is_file():
        raise ModelError(f"{file}: there is no such file")
    name = f"plumdp_model_{file.stem}"  # not that of a module which others import
    spec = spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.path.insert(0, str(file.absolute().parent))
    sys.modules[name] = module  # as dataclasses look up their module
    try:
        with redirect_stdout(sys.stderr):  # standard output is for results
            spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _failed(file, error) from None
    return module


def _called(file: Path, name: str, function: Any, constants: Mapping[str, str]) -> Any:
    """Return the result of a function, called with constants as its keywords."""
    parameters = inspect.signature(function).parameters
    unknown = [constant for constant in constants if constant not in parameters]
    missing = [text for text, one in parameters.items() if one.default is one.empty and text not in constants]
    if unknown:
        takes = ", ".join(parameters) or "nothing"
        raise ModelError(f"--constant {unknown[0]}: {file}:{name} has no such argument; it takes {takes}")
    if missing:
        raise ModelError(f"{file}:{name} needs a value for {missing[0]}; give --constant {missing[0]}=…")
    try:
        with redirect_stdout(sys.stderr):
            return function(**{key: _value(key, value, parameters[key]) for key, value in constants.items()})
    except (Exception, SystemExit) as error:
        raise _failed(file, error) from None


def _value(name: str, text: str, argument: inspect.Parameter) -> int | Fraction | str:
    """Return the number that a text is, or the text itself, unless the default of the argument is a number."""
    from plumdp.model.expressions.polynomial import exact

    try:
        value = exact(text)
    except ValueError:
        if isinstance(argument.default, int | float | Fraction):
            raise ModelError(f"--constant {name}={text}: give a number") from None
        return text
    return int(value) if value.denominator == 1 else value


def _failed(file: Path, error: BaseException) -> ModelError:
    """Return an error that says in which line of the file something went wrong."""
    lines = [
        frame.lineno for frame in extract_tb(error.__traceback__) if Path(frame.filename).absolute() == file.absolute()
    ]
    line = error.lineno if isinstance(error, SyntaxError) else lines[-1] if lines else None
    problem = str(error) if isinstance(error, ModelError) else f"{type(error).__name__}: {error}"
    return ModelError(f"{file}{'' if line is None else f', line {line}'}: {problem}")
