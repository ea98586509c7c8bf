"""What the processes of a service have done lately: counts and times in memory that they share, summed when asked."""
