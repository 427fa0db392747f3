"""The paper's studies: each module runs experiments, decides claims, and draws figures from the records."""
