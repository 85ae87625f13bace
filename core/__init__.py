"""Angle distributions, their disturbance, the scaling methods, and extending a model; installed as
`dprope`."""
