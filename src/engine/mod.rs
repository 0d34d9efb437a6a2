//! Container engines through bollard, and processes: who holds a checkout. Reads only.
