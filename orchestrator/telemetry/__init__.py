"""Stage timings and logs.

Here: the timings of the stages, the access log, the log format; later metrics and tracing. Not here: any decision that
a measurement leads to.
"""
