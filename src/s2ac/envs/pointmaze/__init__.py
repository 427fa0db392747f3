"""PointMaze: a ball in a maze with several goals; in JAX, as Gymnasium environments on MuJoCo, and how it is scored."""
