"""The edge for the command line, over ``service``.

Here: arguments, progress, tables, exit codes. Not here: any rule about searching or writing.
"""
