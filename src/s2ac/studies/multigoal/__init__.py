"""The multigoal study: systems judged by the exact optimum."""
