//! One source file, with switches.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use proc_macro2::LineColumn;
use syn::{
    spanned::Spanned as _,
    visit::{self, Visit},
};

use crate::{Mutant, Place};

/// A file with switches in it.
pub struct Rewritten {
    /// Its text.
    pub text: String,
    /// Where the text of each mutant stands in it.
    pub ids: Vec<(usize, Range<usize>)>,
    /// And the whole expression in which it is switched on.
    pub wholes: Vec<(usize, Range<usize>)>,
}

/// Rewrites a file. `stays_const`: whether the function of that name must stay constant.
pub fn file<'m>(
    source: &str,
    mutants: impl Iterator<Item = (usize, &'m Mutant)>,
    stays_const: impl Fn(&str) -> bool,
) -> Rewritten {
    let lines: Vec<usize> =
        std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut by_place: BTreeMap<(usize, usize), Vec<(usize, &Mutant)>> = BTreeMap::new();
    let offset = |place: Place| {
        let line = lines[place.line - 1];
        let text = &source[line..];
        line + text.char_indices().nth(place.column - 1).map_or(text.len(), |(at, _)| at)
    };
    for (id, mutant) in mutants {
        by_place.entry((offset(mutant.span.start), offset(mutant.span.end))).or_default().push((id, mutant));
    }
    let parsed = syn::parse_file(source).expect("a source that compiles");
    let mut walk = Walk {
        source,
        lines: &lines,
        by_place,
        edits: Vec::new(),
        stays_const: BTreeSet::new(),
        in_const: false,
    };
    walk.stays_const = const_functions(source).filter(|name| stays_const(name)).map(str::to_string).collect();
    walk.visit_file(&parsed);
    apply(source, walk.edits)
}

fn const_functions(source: &str) -> impl Iterator<Item = &str> {
    source.match_indices("const fn ").map(|(at, found)| {
        let name = &source[at + found.len()..];
        &name[..name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len())]
    })
}

/// Text that is put in, or takes the place of a range.
#[derive(Default)]
struct Edit {
    range: Range<usize>,
    /// Of two at one place: outer ones open first and close last.
    rank: isize,
    text: String,
    ids: Vec<(usize, Range<usize>)>,
    /// Mutants whose switch ends with it.
    closes: Vec<usize>,
}

struct Walk<'s> {
    source: &'s str,
    lines: &'s [usize],
    by_place: BTreeMap<(usize, usize), Vec<(usize, &'s Mutant)>>,
    edits: Vec<Edit>,
    stays_const: BTreeSet<String>,
    /// Inside a function that must stay constant, or a constant: no switch can be there.
    in_const: bool,
}

impl<'s> Walk<'s> {
    fn offset(&self, place: LineColumn) -> usize {
        let line = self.lines[place.line - 1];
        let text = &self.source[line..];
        line + text.char_indices().nth(place.column).map_or(text.len(), |(at, _)| at)
    }

    fn range(&self, span: proc_macro2::Span) -> Range<usize> {
        self.offset(span.start())..self.offset(span.end())
    }

    /// The mutants of exactly this text.
    fn take(&mut self, range: &Range<usize>) -> Vec<(usize, &'s Mutant)> {
        if self.in_const {
            Vec::new()
        } else {
            self.by_place.remove(&(range.start, range.end)).unwrap_or_default()
        }
    }

    /// `(if on(1) { mutant } else … { expression })`.
    fn switch(&mut self, whole: &Range<usize>, mutants: Vec<(usize, String)>) {
        if mutants.is_empty() {
            return;
        }
        let (mut text, mut ids) = (String::from("("), Vec::new());
        for (id, mutated) in mutants {
            text += &format!("if crate::mutant_is_on({}) {{ ", id + 1);
            ids.push((id, text.len()..text.len() + mutated.len()));
            text += &mutated;
            text += " } else ";
        }
        text += "{ ";
        let length = whole.len() as isize;
        let closes = ids.iter().map(|(id, _)| *id).collect();
        self.edits.push(Edit {
            range: whole.start..whole.start,
            rank: -length,
            text,
            ids,
            ..Edit::default()
        });
        self.edits.push(Edit {
            range: whole.end..whole.end,
            rank: length,
            text: " })".into(),
            closes,
            ..Edit::default()
        });
    }

    /// The text of `whole` with `part` replaced.
    fn with(&self, whole: &Range<usize>, part: &Range<usize>, by: &str) -> String {
        format!("{}{by}{}", &self.source[whole.start..part.start], &self.source[part.end..whole.end])
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) -> bool {
        let stays = self.stays_const.contains(&signature.ident.to_string());
        if let (Some(token), false) = (&signature.constness, stays) {
            let range = self.range(token.span());
            self.edits.push(Edit { range, ..Edit::default() });
        }
        let outer = std::mem::replace(&mut self.in_const, stays && signature.constness.is_some());
        // cargo-mutants' span is that of the statements, without the braces.
        if let (Some(first), Some(last)) = (block.stmts.first(), block.stmts.last()) {
            let range = self.offset(first.span().start())..self.offset(last.span().end());
            let open = self.offset(block.brace_token.span.open().end());
            let close = self.offset(block.brace_token.span.close().start());
            let closes: Vec<usize> = self.by_place.get(&(range.start, range.end)).into_iter().flatten().map(|(id, _)| *id).collect();
            for (id, mutant) in self.take(&range) {
                let value = mutant
                    .replacement
                    .replace("vec![", "alloc::vec![")
                    .replace("Vec::", "alloc::vec::Vec::")
                    .replace("String::", "alloc::string::String::")
                    .replace("Box::", "alloc::boxed::Box::")
                    .replace("alloc::alloc::", "alloc::");
                let head = format!(" if crate::mutant_is_on({}) {{ return ", id + 1);
                let ids = vec![(id, head.len() - 7..head.len() + value.len())];
                self.edits.push(Edit {
                    range: open..open,
                    rank: 0,
                    text: format!("{head}{value}; }}"),
                    ids,
                    ..Edit::default()
                });
            }
            self.edits.push(Edit { range: close..close, rank: isize::MAX, closes, ..Edit::default() });
        }
        outer
    }
}

/// Whether `if let` reaches into this expression: no parenthesis may then be put around it.
fn holds_let(expression: &syn::Expr) -> bool {
    match expression {
        syn::Expr::Let(_) => true,
        syn::Expr::Binary(binary) => holds_let(&binary.left) || holds_let(&binary.right),
        _ => false,
    }
}

impl<'ast> Visit<'ast> for Walk<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !item.attrs.iter().any(|attribute| attribute.path().is_ident("cfg")) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        let outer = self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        self.in_const = outer;
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        let outer = self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
        self.in_const = outer;
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let outer = std::mem::replace(&mut self.in_const, true);
        visit::visit_item_const(self, item);
        self.in_const = outer;
    }

    fn visit_impl_item_const(&mut self, item: &'ast syn::ImplItemConst) {
        let outer = std::mem::replace(&mut self.in_const, true);
        visit::visit_impl_item_const(self, item);
        self.in_const = outer;
    }

    fn visit_expr_binary(&mut self, expression: &'ast syn::ExprBinary) {
        let whole = self.range(expression.span());
        let operator = self.range(expression.op.span());
        if !holds_let(&expression.left) && !holds_let(&expression.right) {
            let mutants = self.take(&operator);
            let mutants = mutants
                .iter()
                .map(|(id, mutant)| (*id, self.with(&whole, &operator, &mutant.replacement)))
                .collect();
            self.switch(&whole, mutants);
        }
        visit::visit_expr_binary(self, expression);
    }

    fn visit_expr_unary(&mut self, expression: &'ast syn::ExprUnary) {
        let whole = self.range(expression.span());
        let operator = self.range(expression.op.span());
        let mutants = self.take(&operator);
        let mutants = mutants
            .iter()
            .map(|(id, mutant)| (*id, self.with(&whole, &operator, &mutant.replacement)))
            .collect();
        self.switch(&whole, mutants);
        visit::visit_expr_unary(self, expression);
    }

    fn visit_expr_match(&mut self, expression: &'ast syn::ExprMatch) {
        for arm in &expression.arms {
            let whole = self.range(arm.span());
            for (id, _) in self.take(&whole) {
                let at = self.range(arm.pat.span()).end;
                let text = format!(" if !crate::mutant_is_on({})", id + 1);
                let ids = vec![(id, 0..text.len())];
                self.edits.push(Edit { range: at..at, rank: 0, text, ids, ..Edit::default() });
            }
            if let Some((_, guard)) = &arm.guard {
                let range = self.range(guard.span());
                let mutants = self.take(&range);
                if !holds_let(guard) {
                    let mutants =
                        mutants.iter().map(|(id, mutant)| (*id, mutant.replacement.clone())).collect();
                    self.switch(&range, mutants);
                }
            }
        }
        visit::visit_expr_match(self, expression);
    }

    fn visit_expr_struct(&mut self, expression: &'ast syn::ExprStruct) {
        if let Some(rest) = &expression.rest {
            let base = self.source[self.range(rest.span())].to_string();
            for pair in expression.fields.pairs() {
                let field = pair.value();
                let start = self.range(field.span());
                let end = pair.punct().map_or(start.end, |comma| self.range(comma.span()).end);
                let mutants = self.take(&(start.start..end));
                let value = self.range(field.expr.span());
                if let (syn::Member::Named(name), Some(_)) = (&field.member, &field.colon_token) {
                    let mutants = mutants.iter().map(|(id, _)| (*id, format!("({base}).{name}"))).collect();
                    self.switch(&value, mutants);
                }
            }
        }
        visit::visit_expr_struct(self, expression);
    }
}

fn apply(source: &str, mut edits: Vec<Edit>) -> Rewritten {
    // What closes at a place comes before what opens there.
    edits.sort_by_key(|edit| (edit.range.start, edit.rank <= 0, edit.rank));
    let mut out = Rewritten { text: String::new(), ids: Vec::new(), wholes: Vec::new() };
    let (mut open, mut at) = (BTreeMap::new(), 0);
    for edit in edits {
        out.text += &source[at..edit.range.start];
        let begin = out.text.len();
        for (id, range) in edit.ids {
            open.insert(id, begin);
            out.ids.push((id, begin + range.start..begin + range.end));
        }
        out.text += &edit.text;
        for id in edit.closes {
            out.wholes.push((id, open.get(&id).copied().unwrap_or(begin)..out.text.len()));
        }
        at = edit.range.end;
    }
    out.text += &source[at..];
    out
}
