"""The best policy of an interval MDP against nature, and certified values of a given policy.

In: ``IntervalMDP`` and an objective.
Out: ``Solution``: bounds on the value of every state, and a policy.
Begin with: ``solve.py`` and ``evaluate.py``; ``reduce.py`` simplifies a problem before and translates the answer back
    after.
Used by: tables, stages, learning, certifying, verifying, explaining, online, cli.
"""
