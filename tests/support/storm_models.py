"""Models at a point as Storm reads them, and what it says of them."""

import stormpy

stormpy.developer.set_log_level(stormpy.developer.LogLevel.OFF)


def as_drn(graph, probability, labels, state_reward, choice_reward):
    """Return a model in Storm's format, given the probability of each transition and the rewards "r"."""
    lines = ["@type: MDP", "@parameters", "", "@reward_models", "r", "@nr_states", str(graph.n_states)]
    lines += ["@nr_choices", str(graph.n_choices), "@model"]
    for s in range(graph.n_states):
        names = ["init"] * (s == graph.initial_state) + [name for name, states in labels.items() if states[s]]
        lines.append(f"state {s} [{float(state_reward[s])}] {' '.join(names)}")
        for number, c in enumerate(range(graph.first_choice[s], graph.first_choice[s + 1])):
            lines.append(f"\taction {number} [{float(choice_reward[c])}]")
            to = {}
            for t in range(graph.first_transition[c], graph.first_transition[c + 1]):
                to[int(graph.successor[t])] = to.get(int(graph.successor[t]), 0.0) + float(probability[t])
            lines += [f"\t\t{j} : {p!r}" for j, p in sorted(to.items()) if p > 0]
    return "\n".join(lines) + "\n"


def storm_value(text, path, asked):
    """Return Storm's value of a property in the initial state of a model that is written to a file."""
    path.write_text(text, encoding="utf-8")
    model, formula = stormpy.build_model_from_drn(str(path)), stormpy.parse_properties(asked)
    environment = stormpy.Environment()
    environment.solver().min_max().precision = stormpy.Rational("1e-10")
    found = stormpy.model_checking(model, formula[0], only_initial_states=True, environment=environment)
    return found.get_value(model.initial_states[0])
