"""A synthetic table of clinic data, whose dependences are known."""

from typing import NamedTuple

import numpy as np

from dpmic_jax.data.limits import Bounds, Column

RECORDS = 20_000


class Demo(NamedTuple):
    """The demo table.

    Attributes:
      columns: the values of 20 000 records, by column name.
      bounds: the public range of each column, by name.
      dependent: the pairs that depend on each other; all other pairs are independent.
    """

    columns: dict[str, Column]
    bounds: dict[str, Bounds]
    dependent: frozenset[frozenset[str]]


def demo() -> Demo:
    """Generate the table from a fixed seed, so that it is always the same.

    The groups below are drawn independently, so pairs across groups are independent:

    - age, blood_pressure, kidney_function: linear, up and down;
    - hour, temperature, cortisol: periodic, one and two waves a day;
    - dose, response: a threshold;
    - body_mass, risk: a parabola;
    - clinic_id, waiting_minutes: each independent of everything.
    """
    rng = np.random.default_rng(20_220_717)
    age = rng.uniform(18, 90, RECORDS)
    hour = rng.uniform(0, 24, RECORDS)
    dose = rng.uniform(0, 100, RECORDS)
    body_mass = rng.uniform(15, 45, RECORDS)

    def noise(scale: float) -> Column:
        return rng.normal(0, scale, RECORDS)

    columns = {
        "age": age,
        "blood_pressure": 95 + 0.6 * age + noise(8),
        "kidney_function": 130 - 0.9 * age + noise(12),
        "hour": hour,
        "temperature": 36.8 + 0.5 * np.sin(2 * np.pi * (hour - 10) / 24) + noise(0.12),
        "cortisol": 12 + 8 * np.cos(4 * np.pi * (hour - 10) / 24) + noise(1.5),
        "dose": dose,
        "response": np.where(dose > 55, 70, 25) + noise(9),
        "body_mass": body_mass,
        "risk": 5 + 0.08 * (body_mass - 26) ** 2 + noise(2.5),
        "clinic_id": rng.integers(1, 13, RECORDS),
        "waiting_minutes": rng.exponential(25, RECORDS),
    }
    bounds: dict[str, Bounds] = {
        "age": (18, 90),
        "blood_pressure": (70, 190),
        "kidney_function": (0, 160),
        "hour": (0, 24),
        "temperature": (35.5, 38.0),
        "cortisol": (0, 26),
        "dose": (0, 100),
        "response": (0, 100),
        "body_mass": (15, 45),
        "risk": (0, 40),
        "clinic_id": (1, 12),
        "waiting_minutes": (0, 120),
    }
    groups = (
        ("age", "blood_pressure", "kidney_function"),
        ("hour", "temperature", "cortisol"),
        ("dose", "response"),
        ("body_mass", "risk"),
    )
    dependent = {frozenset((x, y)) for group in groups for x in group for y in group if x != y}
    return Demo(columns, bounds, frozenset(dependent))
