"""What the stages of a search share while a request runs.

Here: the values that stages pass on, the deadline and how it is divided, stages that may fail, fair queues. Not here:
any stage, and any decision about a request.
"""
