"""Networks: layers, critics, and critics with batch normalisation."""
