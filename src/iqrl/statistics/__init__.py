"""Numbers of learning curves, and how sure they are: NumPy and SciPy only.

Curves are arrays [seeds, points]; NaN is a period in which no episode ended. A score is one number of one
seed; a seed of which nothing is known is left out. What is random takes a seed and gives the same each time.
"""
