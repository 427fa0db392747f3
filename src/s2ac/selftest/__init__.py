"""The promises of `docs/reliability.md`, tried on the user's own machine and file system: `s2ac selftest`.

    tiny.py     small trainings in processes of their own, the hash of all that one leaves, and a killer
    damage.py   damage to files, and what reading them then finds
    checks.py   the promises, each as a function
    page.py     what held, as a page and as JSON

The slow tests call the same functions.
"""
