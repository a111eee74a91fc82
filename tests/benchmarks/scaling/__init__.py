"""Time and memory of the kernel density graph, against rows and against nodes."""
