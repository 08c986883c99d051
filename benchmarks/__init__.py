"""What is measured: `make bench`. Reads the data sets beside the project where they are there."""
