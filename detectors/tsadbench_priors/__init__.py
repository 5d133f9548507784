"""Priors from documents: a language model reads how a system is built, and votes on which sensor drives which."""
