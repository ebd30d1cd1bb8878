"""The names of the package, and where they are: `__init__.py` imports each on its first use."""

from .independence import CustomTest as CustomTest
from .independence import IndependenceTest as IndependenceTest
from .independence import PairTest as PairTest
from .independence import require_level as require_level
from .monte_carlo import draws_needed as draws_needed
from .multiple_testing import BenjaminiHochberg as BenjaminiHochberg
from .multiple_testing import FalseDiscovery as FalseDiscovery
from .multiple_testing import FamilyWise as FamilyWise
from .null_table import NullTable as NullTable
from .nulls import NullLaw as NullLaw
from .nulls import null_law as null_law
from .permutation import Permutation as Permutation
from .permutation import permutation_p_values as permutation_p_values
from .post_selection import NOT_PRIVATE as NOT_PRIVATE
from .post_selection import PostSelection as PostSelection
from .post_selection import post_selection as post_selection
from .private_decisions import PrivateDecisions as PrivateDecisions
from .private_p_values import PrivatePValues as PrivatePValues
from .private_result import IndependenceResult as IndependenceResult
from .private_test import independence_test as independence_test
from .selection import Bonferroni as Bonferroni
from .selection import Correction as Correction
from .selection import MaxInformationCorrection as MaxInformationCorrection
from .tables import TableTest as TableTest
