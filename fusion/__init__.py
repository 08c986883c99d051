"""Pure ranking arithmetic on columns: no I/O, no ``async``, no import of another package of this project.

Here: rankings and candidates, fusion strategies, boosts, collapsing of chunks, the walk over a graph. Not here:
anything that reads an index, a clock or a setting.
"""
