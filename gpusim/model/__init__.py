"""What is simulated: builder, checks, tables, model and state."""
