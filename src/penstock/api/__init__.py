"""The kinds as typed Python: fields, defaults, validation. CRD YAML is generated from them."""
