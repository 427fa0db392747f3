"""The report: one HTML page of a run or several, written at the end of a run, on request, or served while it goes."""
