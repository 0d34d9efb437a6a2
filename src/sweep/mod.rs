//! The only place that deletes: it consumes warrants that only the judge mints.
