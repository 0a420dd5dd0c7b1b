"""The `aws` resource plugin of stage `local`, and of previews that need no account."""
