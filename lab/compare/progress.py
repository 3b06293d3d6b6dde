"""Reports on standard error what runs and how much time is left."""

import sys


def readable_time(seconds):
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"


class Progress:
    """Knows how long each step took last time, and estimates the others by the mean of those."""

    def __init__(self, stream=None):
        self.stream = stream = stream or sys.stderr
        self.durations = {}
        self.line_length = 0
        self.is_terminal = hasattr(stream, "isatty") and stream.isatty()

    def learn(self, step, seconds):
        self.durations[step] = seconds

    def time_left(self, steps):
        """None while nothing is known."""
        if not self.durations:
            return None
        mean = sum(self.durations.values()) / len(self.durations)
        return sum(self.durations.get(step, mean) for step in steps)

    def show(self, done, total, what, left):
        share = done / total if total else 1
        bar = "#" * round(share * 20)
        text = f"[{bar:<20}] {done}/{total} {what}" + (f", about {readable_time(left)} left" if left else "")
        if self.is_terminal:
            self.stream.write("\r" + text.ljust(self.line_length)[:200])
            self.line_length = len(text)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def say(self, text):
        if self.is_terminal and self.line_length:
            self.stream.write("\r" + " " * self.line_length + "\r")
            self.line_length = 0
        self.stream.write(text + "\n")
        self.stream.flush()
