"""Files at addresses: of web servers and buckets."""
