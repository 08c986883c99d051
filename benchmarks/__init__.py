"""Benchmarks: ``make bench``. Data sets beside the project are used if they exist."""
