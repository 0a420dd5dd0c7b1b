"""The document portal: pages rendered here, one small script, nothing from elsewhere."""
