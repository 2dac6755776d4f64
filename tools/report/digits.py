"""How the page writes numbers."""


def number(value, digits=3):
    """With so many digits, or more: a whole number has all of its own. Never a power of ten."""
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e+" in text else text
