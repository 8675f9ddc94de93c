"""What benchmarks share that set two commands beside each other: seconds, data sets, sweeps, their page.

Imports the package, and nothing of the benchmarks."""
