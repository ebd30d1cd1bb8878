"""Events and mechanisms for other libraries of differential privacy: dp-accounting, OpenDP."""

from dpmic_jax.integrations.dp_accounting import DpAccountingEvents, to_dp_accounting
from dpmic_jax.integrations.opendp import to_opendp

__all__ = ["DpAccountingEvents", "to_dp_accounting", "to_opendp"]
