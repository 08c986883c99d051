"""Documents in: what a line may hold, what data sets look like, and the way into the stores."""
