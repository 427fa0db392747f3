"""The PointMaze study: how many goals a policy keeps, and what that is worth when goals go or obstacles come."""
