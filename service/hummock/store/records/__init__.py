"""What lies in the tables: records, forward lists of terms, operations."""
