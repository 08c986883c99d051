"""What the stages of a request share while they run.

Here: the values that stages pass on, the deadline and how it is divided, stages that may fail, fair queues. Not here:
any stage, and any decision about a request.
"""
