"""This package beside other measures of dependence that are not private: `benchmarks.peers`.

Peers are called as their manuals say, with their defaults. Three of our scores are the answer to
what was written about the power of MIC: a total information coefficient (`TableTest`), the distance
from independence, and MICe whose entries are compared with what they are by chance.
"""
