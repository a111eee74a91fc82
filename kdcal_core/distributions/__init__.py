"""Predictive distributions over many rows at once, behind one protocol.

A room of the ground floor, because simulations, parents, reviews and recalibration all speak of
them (paper 003 section 2 writes F^ for a row's predictive distribution function).
"""
