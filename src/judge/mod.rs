//! Facts to verdicts and warrants. Pure: no I/O, no clock, no environment.
