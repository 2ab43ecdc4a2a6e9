"""The likelihood table as it used to be: of two equal outcomes of a class, one was counted for both."""

from plumdp.confidence import likelihood_table


def equal_outcomes_are_merged_once(patch):
    """The sum p/4 + p/4 meets a p/2: one of two equal outcomes is counted for both."""

    def once(probabilities):
        key = [None if f.is_constant else f for f in probabilities]
        sums = {k: sum((f for f, own in zip(probabilities, key, strict=True) if own == k), start=0) for k in key}
        outcomes = list(sums.values())
        return outcomes, [len(outcomes) - 1 - outcomes[::-1].index(sums[k]) for k in key]

    patch.setattr(likelihood_table, "merge_equal", once)
    patch.setattr(likelihood_table._Groups, "_numbers", with_twins)


def with_twins(groups, polynomials, *, is_class):
    """Return numbers as they were when a class could have two equal outcomes: the last one counts for both."""
    key = is_class, tuple(polynomials)
    if key not in groups._number_of_member:
        groups._number_of_member[key] = {f: len(groups.outcomes) + i for i, f in enumerate(polynomials)}
        groups.outcomes += polynomials
        groups.group += [len(groups.is_class)] * len(polynomials)
        groups.is_class.append(is_class)
    return groups._number_of_member[key]
