"""What a release page has, in one folder; run by `make release`. No part of the product."""
