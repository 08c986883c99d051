"""Stage timings and logs.

Here: the timings of the stages, traces, metrics, the access log, the log format. Not here: any decision that
a measurement leads to.
"""
