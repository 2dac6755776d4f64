"""How the page writes numbers."""

from math import floor, log10


def number(value, digits=3):
    """With so many digits, or more: a whole number has all of its own. Never a power of ten."""
    text = f"{value:.{digits}g}"
    if "e" not in text:
        return text
    return f"{value:.{max(0, digits - 1 - floor(log10(abs(value))))}f}"
