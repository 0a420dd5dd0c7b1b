"""One module per AWS service, each with the table rows of its resource types."""
