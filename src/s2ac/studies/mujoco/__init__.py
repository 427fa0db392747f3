"""The MuJoCo study: nine systems on five tasks."""
