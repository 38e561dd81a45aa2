//! Units and values as text: JSON lines and ledger images.
