# pyright: basic, reportUnnecessaryTypeIgnoreComment=error
"""What a type checker sees of the package: run by `.ci/run`, by nobody else.

Names at the top have the types of their definitions, and a name that is not there is an error: the
comment below would be unnecessary if it were none.
"""

import dpmic_jax as dm
from dpmic_jax import MICr, mice

value: float = mice([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0])
statistic: MICr = dm.MICr(B=20)
budget: dm.Budget = dm.Budget(1.0)
key = dm.secret_key()
missing = dm.nosuch  # pyright: ignore[reportAttributeAccessIssue]
