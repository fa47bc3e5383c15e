"""Evaluation of congestion control by published test cases: RFC 8867 and RFC 8869.

The cases and the bands by which they are judged are files in ``rmcat``; its README explains them.
"""
