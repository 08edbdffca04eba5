"""The caches of Kubernetes objects, of no API group: stores, indexes and what is read from them."""
