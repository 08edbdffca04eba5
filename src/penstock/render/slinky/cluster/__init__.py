"""Manifests of a Controller, its RestApis and LoginSets."""
