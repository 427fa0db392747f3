"""Pictures of a part of the plane, drawn with numpy alone: they need neither a display nor a game library."""

from typing import Any

import numpy as np

Colour = tuple[int, int, int]


class Canvas:
    """A picture of [−x, x] × [−y, y], uint8 `[rows, columns, 3]`; up is up."""

    def __init__(self, half: tuple[float, float], size: int, background: Colour) -> None:
        """`half` is (x, y); `size` are the pixels of the longer side."""
        columns, rows = (round(size * side / max(half)) for side in half)
        self.picture = np.full((rows, columns, 3), background, np.uint8)
        self._x, self._y = np.linspace(-half[0], half[0], columns), np.linspace(half[1], -half[1], rows)

    def disc(self, centre: Any, radius: float, colour: Colour) -> None:
        """A filled circle."""
        x, y, part = self._near(centre, centre, radius)
        part[(x - centre[0]) ** 2 + (y - centre[1]) ** 2 <= radius**2] = colour

    def square(self, centre: Any, half: float, colour: Colour) -> None:
        """A filled square, its side twice `half`."""
        self._near(centre, centre, half)[2][:] = colour

    def line(self, begin: Any, end: Any, half: float, colour: Colour) -> None:
        """A segment, `half` wide to either side and round at its ends."""
        x, y, part = self._near(begin, end, half)
        (x0, y0), (x1, y1) = begin, end
        length = (x1 - x0) ** 2 + (y1 - y0) ** 2
        share = np.clip(((x - x0) * (x1 - x0) + (y - y0) * (y1 - y0)) / length, 0, 1) if length > 0 else 0.0
        part[np.hypot(x - x0 - share * (x1 - x0), y - y0 - share * (y1 - y0)) <= half] = colour

    def _near(self, begin: Any, end: Any, margin: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Coordinates of the pixels around a segment, and those pixels: most of a picture is far from it."""
        (left, right), (low, high) = ((min(a, b) - margin, max(a, b) + margin) for a, b in zip(begin, end, strict=True))
        columns = slice(*np.searchsorted(self._x, (left, right)))
        rows = slice(*np.searchsorted(-self._y, (-high, -low)))
        return self._x[None, columns], self._y[rows, None], self.picture[rows, columns]
