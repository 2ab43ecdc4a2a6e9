"""A clock that only work moves: time in tests of timing."""


class Work:
    """A clock, and work that moves it by given seconds, one after the other."""

    def __init__(self):
        self.now, self.order = 0.0, []

    def __call__(self):
        return self.now

    def of(self, name, *seconds):
        left = iter(seconds)

        def work():
            self.order.append(name)
            self.now += next(left)
            return name

        return work
