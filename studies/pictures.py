"""Makes every kind of picture, from models with few and many parameters, states and actions.

    python -m studies.pictures FOLDER

Each is written as it is, and with ``--phone`` also at 390 pixels, to be looked at; ``--only region`` makes some. With
``--studies`` it draws the figures of studies again, such as those in docs/results, from their stored rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from time import perf_counter
from typing import Any

import plumdp as pl
from plumdp.plots.draw import Picture
from plumdp.plots.style import styled

STUDIES = {  # instances, runs
    "betting:5": 2_000,
    "aircraft:5,5,2": 2_000,
    "glider:3,3,2,2": 500,
    "engagement:5": 3_000,
    "rover:4,4,2": 2_000,
    "parallel:2,1": 2_000,
}


@cache
def learned_study(name: str, **options: Any) -> tuple[Any, Any]:
    """Return a case study, and what simulated runs say about it."""
    study = pl.case_study(name)
    counts = pl.simulate(study.model, study.true_point, STUDIES[name], rng=1, max_steps=study.max_steps)
    return study, pl.learn(study.model, counts, objectives=[study.objective], **options)


@cache
def robot() -> tuple[Any, Any, str]:
    """Return a model with a word, a Boolean and ten actions, what runs say about it, and its property."""
    slip, rain = pl.parameters("slip", "rain")

    def step(state: Any) -> dict[str, Any]:
        if state.room == 5:
            return {"rest": [(1, state)]}
        weather = "wet" if state.weather == "dry" else "dry"
        found = {}
        for speed in range(1, 11):
            ahead = state._replace(room=min(5, state.room + (2 if speed > 5 else 1)))
            miss = slip * speed / 20 * (2 if state.weather == "wet" else 1)
            change = rain / 10
            found[f"speed {speed}"] = [
                (1 - miss - change, ahead),
                (miss, state._replace(room=0, door=not state.door)),
                (change, state._replace(weather=weather)),
            ]
        return found

    start = {"room": 0, "weather": "dry", "door": False}
    space = pl.ParameterSpace.box({"slip": (0, 0.8), "rain": (0, 0.9)})
    model = pl.explore(step, start, space=space, labels={"there": lambda state: state.room == 5})
    text = 'Pmax=? [ F<=6 "there" ]'
    counts = pl.simulate(model, {"slip": 0.4, "rain": 0.5}, 3_000, rng=1, max_steps=12)
    return model, pl.learn(model, counts, objectives=[text]), text


@cache
def many() -> tuple[Any, Any, str]:
    """Return a model with nine parameters, what runs say about it, and its property."""
    unknown = pl.parameters(*(f"rate{i}" for i in range(9)))

    def step(state: Any) -> dict[str, Any]:
        if state.place >= 9 or state.place < 0:
            return {"stay": [(1, state)]}
        share = unknown[state.place]
        return {"go": [(share, state._replace(place=state.place + 1)), (1 - share, state._replace(place=-1))]}

    space = pl.ParameterSpace.unit(*(f"rate{i}" for i in range(9)))
    model = pl.explore(step, {"place": 0}, space=space, labels={"end": lambda state: state.place == 9})
    truth = {f"rate{i}": (97 - 2 * i) / 100 for i in range(9)}
    counts = pl.simulate(model, truth, 3_000, rng=1, max_steps=12)
    return model, pl.learn(model, counts, objectives=['Pmax=? [ F "end" ]']), 'Pmax=? [ F "end" ]'


@cache
def records(name: str, exploration: float = 0.0) -> list[Any]:
    """Return the records of learning a case study while acting."""
    study = pl.case_study(name)
    place = pl.online.simulator(study.model, study.true_point, rng=1, max_steps=study.max_steps)
    found = pl.learn_online(study.model, place, study.objective, episodes=20_000, exploration=exploration)
    return list(found)


def of_study(name: str) -> Iterator[tuple[str, Callable[[], Picture]]]:
    """Yield all pictures of a case study."""
    short = name.partition(":")[0]
    yield (
        f"ladder-{short}",
        lambda: pl.draw("ladder", pl.compare(learned_study(name)[1], learned_study(name)[0].objective)),
    )
    yield f"region-{short}", lambda: of_certificate("region", name, truth=learned_study(name)[0].true_point)
    for kind in ("expressions", "policy", "advice", "residuals"):
        yield f"{kind}-{short}", partial(of_certificate, kind, name)


def of_certificate(kind: str, name: str, truth: Any = None, **options: Any) -> Picture:
    """Return a picture of the certificate of a case study."""
    study, learned = learned_study(name, **options)
    return explained(kind, learned, study.objective, truth)


def explained(kind: str, learned: Any, objective: Any, truth: Any = None) -> Picture:
    """Return a picture of what was learned."""
    certificate = pl.conclude(learned, objective)
    return pl.draw(kind, certificate, pl.explain(learned, certificate, parts=[kind]), truth=truth)


def others() -> Iterator[tuple[str, Callable[[], Picture]]]:
    """Yield pictures of other shapes: words, many actions, many parameters, other sets, contradictions, curves."""
    yield "region-robot", lambda: explained("region", *robot()[1:], truth={"slip": 0.4, "rain": 0.5})
    yield "forest-robot", lambda: explained("expressions", *robot()[1:])
    yield "policy-robot", lambda: pl.draw("policy", pl.conclude(*robot()[1:]))
    yield "policy-robot-words", lambda: pl.draw("policy", pl.conclude(*robot()[1:]), x="weather", y="door")
    yield "policy-every-action", every_action
    yield "region-many", lambda: explained("region", *many()[1:])
    yield "forest-many", lambda: explained("expressions", *many()[1:])
    yield "region-interval", lambda: of_certificate("region", "parallel:2,1", confidence_set="interval")
    yield "region-l1", lambda: of_certificate("region", "glider:3,3,2,2", confidence_set="l1")
    yield "region-ellipsoid", lambda: of_certificate("region", "glider:3,3,2,2", confidence_set="ellipsoid")
    yield "ladder-contradicted", contradicted
    yield "ladder-no-data", no_data
    yield "online-betting", lambda: pl.draw("online", records("betting:5"))
    yield "online-several", several


def every_action() -> Picture:
    """Return the map of a policy that takes another action in each room."""
    graph = robot()[0].graph
    sizes = graph.first_choice[1:] - graph.first_choice[:-1]
    return pl.draw("policy", pl.PolicyTable(graph, graph.first_choice[:-1] + [i % n for i, n in enumerate(sizes)]))


def contradicted() -> Picture:
    """Return the ladder of a model that the data contradict."""
    study = pl.case_study("betting:5")
    counts = pl.simulate(study.model, {"p": 0.9}, 3_000, rng=1, max_steps=6)
    other = pl.simulate(study.model, {"p": 0.2}, 3_000, rng=1, max_steps=6)
    both = pl.TransitionCounts(
        study.model.graph,
        counts.counts * (study.model.graph.state_of_choice() % 2)[study.model.graph.choice_of_transition()]
        + other.counts * (1 - study.model.graph.state_of_choice() % 2)[study.model.graph.choice_of_transition()],
        "adaptive",
    )
    return pl.draw("ladder", pl.compare(pl.learn(study.model, both, objectives=[study.objective]), study.objective))


def no_data() -> Picture:
    """Return a ladder with bounds that are infinite, for lack of data."""
    study = pl.case_study("glider:3,3,2,2")
    counts = pl.simulate(study.model, study.true_point, 12, rng=1, max_steps=8)
    return pl.draw("ladder", pl.compare(pl.learn(study.model, counts, objectives=[study.objective]), study.objective))


def several() -> Picture:
    """Return the curves of three ways to explore."""
    shares = {"no exploration": 0.0, "a tenth at random": 0.1, "half at random": 0.5}
    found = {name: records("betting:5", share) for name, share in shares.items()}
    return pl.draw("online", found, truth=12.4)


def redraw_studies(results: Path) -> None:
    """Draw the figures of all studies again, from the rows that are stored beside them."""
    from studies.report import draw_again

    for study in sorted(path.parent for path in results.glob("*/results.parquet")):
        print(*draw_again(study.name, study))


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--phone", action="store_true", help="also write each at 390 pixels")
    parser.add_argument("--only", default="", help="pictures whose names contain this")
    parser.add_argument("--studies", action="store_true", help="the folder has results of studies: redraw them")
    asked = parser.parse_args()
    if asked.studies:
        redraw_studies(asked.folder)
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    for name, make in [*(pair for study in STUDIES for pair in of_study(study)), *others()]:
        if asked.only in name:
            began = perf_counter()
            try:
                picture = make()
            except pl.DataError as problem:  # a question without an answer
                print(f"{name:24} {problem}")
                continue
            for kind in ("png", "svg"):
                picture.save(asked.folder / f"{name}.{kind}")
            if asked.phone:
                width = picture.figure.get_size_inches()[0]
                with styled():
                    picture.figure.savefig(asked.folder / f"{name}-phone.png", dpi=390 / width)
            print(f"{name:24} {perf_counter() - began:6.2f} s")


if __name__ == "__main__":
    main()
