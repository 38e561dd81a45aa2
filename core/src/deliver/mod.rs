//! The one ordered sequence of units: batches, positions, acknowledgements.
