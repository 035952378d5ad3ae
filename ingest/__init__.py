"""Ingestion: a posted file becomes sections and passages."""
