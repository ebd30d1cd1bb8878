"""How often screens find what is there, and how often what is not.

`python -m benchmarks.power` measures everything, and writes `results/power.json`, the tables of
docs/power.md and docs/power.png; `python -m benchmarks.power screens demo` measures these parts
again, and `--quick` tries all parts on few data sets and writes nothing.
"""
