"""What a scrape of the exporter costs in a large cluster."""
