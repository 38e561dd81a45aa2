//! Values handed over one by one, each to the method of its kind.

use super::{Date, DateTime, Decimal, Text, Timestamp, Value, ValueFault};

/// Takes the values of a row in order ([`Row::visit`](crate::binlog::rows::Row::visit)), each by the method of
/// its kind; a kind without a method of its own, here or in the implementation, goes to [`Visit::value`].
///
/// What a column is has to be found out once to decode it. Who matches on a [`Value`] finds it out again, and
/// for a small value that is most of its cost.
pub trait Visit<'a> {
    /// A value of any kind in the column at that index.
    ///
    /// # Errors
    /// What ends the visit.
    fn value(&mut self, column: usize, value: Value<'a>) -> Result<(), ValueFault>;

    /// NULL.
    ///
    /// # Errors
    /// What ends the visit; so of the others.
    #[inline]
    fn null(&mut self, column: usize) -> Result<(), ValueFault> {
        self.value(column, Value::Null)
    }

    /// [`Value::Int`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn int(&mut self, column: usize, value: i64) -> Result<(), ValueFault> {
        self.value(column, Value::Int(value))
    }

    /// [`Value::UInt`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn uint(&mut self, column: usize, value: u64) -> Result<(), ValueFault> {
        self.value(column, Value::UInt(value))
    }

    /// [`Value::Double`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn double(&mut self, column: usize, value: f64) -> Result<(), ValueFault> {
        self.value(column, Value::Double(value))
    }

    /// [`Value::Decimal`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn decimal(&mut self, column: usize, value: Decimal<'a>) -> Result<(), ValueFault> {
        self.value(column, Value::Decimal(value))
    }

    /// [`Value::Date`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn date(&mut self, column: usize, value: Date) -> Result<(), ValueFault> {
        self.value(column, Value::Date(value))
    }

    /// [`Value::DateTime`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn date_time(&mut self, column: usize, value: DateTime) -> Result<(), ValueFault> {
        self.value(column, Value::DateTime(value))
    }

    /// [`Value::Timestamp`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn timestamp(&mut self, column: usize, value: Timestamp) -> Result<(), ValueFault> {
        self.value(column, Value::Timestamp(value))
    }

    /// [`Value::Text`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn text(&mut self, column: usize, value: Text<'a>) -> Result<(), ValueFault> {
        self.value(column, Value::Text(value))
    }

    /// [`Value::Blob`].
    ///
    /// # Errors
    /// What ends the visit.
    #[inline]
    fn blob(&mut self, column: usize, value: &'a [u8]) -> Result<(), ValueFault> {
        self.value(column, Value::Blob(value))
    }
}

/// Keeps the value it was given last.
pub(crate) struct Keep<'a>(pub(crate) Value<'a>);

impl<'a> Visit<'a> for Keep<'a> {
    #[inline]
    fn value(&mut self, _column: usize, value: Value<'a>) -> Result<(), ValueFault> {
        self.0 = value;
        Ok(())
    }
}
