//! Standard output and error that do not panic when their reader goes away.

use std::{
    fmt::Arguments,
    io::{self, Write as _},
};

/// A line on standard output. Whoever reads it may have seen enough: then the process ends in silence.
pub fn line(text: Arguments<'_>) {
    let mut out = io::stdout().lock();
    if let Err(error) = writeln!(out, "{text}") {
        end_if_closed(&error);
        // What was asked for cannot be told, so this was no success.
        complaint(format_args!("capstan: standard output: {error}"));
        std::process::exit(3);
    }
}

/// A line on standard error, if anybody reads it.
pub fn complaint(text: Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Ends the process in silence when whoever read our output has seen enough, as a pipe's writers do.
/// Nothing was acknowledged, so with a checkpoint it comes again.
pub fn end_if_closed(error: &io::Error) {
    if error.kind() == io::ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
}

/// [`line`] with a format.
macro_rules! say {
    ($($text:tt)*) => { $crate::out::line(format_args!($($text)*)) };
}

/// [`complaint`] with a format.
macro_rules! tell {
    ($($text:tt)*) => { $crate::out::complaint(format_args!($($text)*)) };
}

/// A text in which what stands between the scheme of a URL and its last `@` is not to be read (Rule 1).
pub fn masked(text: &str) -> String {
    let line = |line: &str| match line.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, rest)) => format!("{scheme}://***@{rest}"),
            None => line.to_owned(),
        },
        None => line.to_owned(),
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}
