"""Draws the three mazes side by side: `python examples/pointmaze_maps.py docs/img/pointmaze.png`."""

import sys

from PIL import Image

from s2ac.envs.pointmaze.draw import draw_all

if __name__ == "__main__":
    Image.fromarray(draw_all()).quantize(16).save(sys.argv[1], optimize=True)
