"""What everything else may use: errors, words of options, outward rounding, threads, compiled kernels."""
