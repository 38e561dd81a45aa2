//! Two sessions that write.

use std::{
    hash::{BuildHasher as _, RandomState},
    path::PathBuf,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use capstan_mysql::{Server, Session, SqlError};

use super::{sql, watch::Interrupt};
use crate::failure::Failure;

/// Between transactions: a shop, not a benchmark. A slow machine must be able to catch up.
const PAUSE: Duration = Duration::from_millis(8);

/// Documents of the one large transaction, and the bytes of each: beyond what is held in memory whole.
const LARGE_ROWS: u32 = 110;
const LARGE_BODY: u32 = 100_000;

/// What the writers did.
#[derive(Clone, Copy, Default)]
pub(super) struct Wrote {
    pub(super) committed: u64,
    pub(super) rolled_back: u64,
    pub(super) largest_bytes: u64,
}

/// The running writers.
pub(super) struct Writers(Vec<JoinHandle<Result<Wrote, SqlError>>>);

impl Writers {
    pub(super) fn start(server: &Server, duration: Duration, interrupt: &Interrupt) -> Result<Self, Failure> {
        let stop_at = Instant::now() + duration;
        let mut writers = Vec::new();
        for work in [shop as fn(&mut Writer) -> Result<(), SqlError>, documents] {
            let mut writer = Writer::connect(server.socket(), stop_at, duration, interrupt.clone())
                .map_err(|error| sql(&error))?;
            writers.push(thread::spawn(move || work(&mut writer).map(|()| writer.wrote)));
        }
        Ok(Self(writers))
    }

    pub(super) fn join(self, interrupt: &Interrupt) -> Result<Wrote, Failure> {
        let mut all = Wrote::default();
        for writer in self.0 {
            let wrote = writer
                .join()
                .map_err(|_| Failure::other("a writer panicked", 4))?
                .map_err(|error| sql(&error))?;
            all.committed += wrote.committed;
            all.rolled_back += wrote.rolled_back;
            all.largest_bytes = all.largest_bytes.max(wrote.largest_bytes);
        }
        interrupt.check()?;
        Ok(all)
    }
}

struct Writer {
    session: Session,
    random: u64,
    transaction: u64,
    began: Instant,
    stop_at: Instant,
    duration: Duration,
    interrupt: Interrupt,
    wrote: Wrote,
}

impl Writer {
    fn connect(
        socket: PathBuf,
        stop_at: Instant,
        duration: Duration,
        interrupt: Interrupt,
    ) -> Result<Self, SqlError> {
        let mut session = Session::connect(&socket, "root")?;
        session.sql("USE shop")?;
        let random = RandomState::new().hash_one(0) | 1;
        let (began, wrote) = (Instant::now(), Wrote::default());
        Ok(Self { session, random, transaction: 0, began, stop_at, duration, interrupt, wrote })
    }

    /// One transaction in one exchange.
    fn run(&mut self, statements: &str, end: &str) -> Result<(), SqlError> {
        self.transaction += 1;
        self.session.sql(&format!("SET @trx = {}; BEGIN; {statements}; {end}", self.transaction))?;
        if end == "ROLLBACK" {
            self.wrote.rolled_back += 1;
        } else {
            self.wrote.committed += 1;
        }
        Ok(())
    }

    fn goes_on(&mut self) -> bool {
        thread::sleep(PAUSE);
        Instant::now() < self.stop_at && !self.interrupt.came()
    }

    /// A number below `n` (xorshift64*).
    fn below(&mut self, n: u64) -> u64 {
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n.max(1)
    }

    fn pick(&mut self, from: &[&'static str]) -> &'static str {
        let at = self.below(from.len() as u64) as usize;
        from.get(at).copied().unwrap_or_default()
    }
}

const NAMES: [&str; 6] = ["Ada O''Brien", "Łukasz Żak", "李小龍", "Zoë 🚲 Müller", "back\\\\slash", "Ann"];
const NOTES: [&str; 4] = ["NULL", "''", "'please \\'ring\\' twice\\n'", "'über Nacht – ☂'"];

/// Customers, orders and their lines.
fn shop(w: &mut Writer) -> Result<(), SqlError> {
    let (mut customers, mut orders) = (0_u64, 0_u64);
    while customers < 20 {
        new_customers(w, &mut customers)?;
    }
    while w.goes_on() {
        match w.below(100) {
            0..50 => {
                let statements = new_order(w, customers, &mut orders);
                w.run(&statements, "COMMIT")?;
            }
            50..58 => {
                let mut unused = orders;
                let statements = new_order(w, customers, &mut unused);
                w.run(&statements, "ROLLBACK")?;
            }
            58..64 => {
                // What a savepoint takes back is in no binlog.
                let mut unused = orders + 1;
                let statements = format!(
                    "{}; SAVEPOINT s; {}; ROLLBACK TO s",
                    new_order(w, customers, &mut orders),
                    new_order(w, customers, &mut unused)
                );
                w.run(&statements, "COMMIT")?;
            }
            64..80 => {
                let (from, status) = (w.below(orders + 1), w.pick(&["paid", "sent", "cancelled"]));
                let statement = format!(
                    "UPDATE orders SET status = '{status}', total = total + 0.01 WHERE id BETWEEN {from} AND {}",
                    from + 3
                );
                w.run(&statement, "COMMIT")?;
            }
            80..88 => {
                let customer = w.below(customers) + 1;
                let statement = format!(
                    "UPDATE customers SET profile = JSON_SET(COALESCE(profile, '{{}}'), '$.visits', {}, '$.rate', {}e-3), \
                     seen = NOW(6) WHERE id = {customer}",
                    w.below(1000),
                    w.below(100_000)
                );
                w.run(&statement, "COMMIT")?;
            }
            88..96 => {
                let order = w.below(orders + 1);
                let statements = format!(
                    "DELETE FROM order_lines WHERE order_id = {order}; DELETE FROM orders WHERE id = {order}"
                );
                w.run(&statements, "COMMIT")?;
            }
            _ => new_customers(w, &mut customers)?,
        }
    }
    Ok(())
}

fn new_customers(w: &mut Writer, customers: &mut u64) -> Result<(), SqlError> {
    let mut rows = Vec::new();
    for _ in 0..5 {
        *customers += 1;
        let (name, born) = (w.pick(&NAMES), w.pick(&["NULL", "'1969-07-20'", "'2000-02-29'"]));
        let profile =
            w.pick(&["NULL", r#"'{"tags": ["a", "ß", "\\"q\\""], "n": 1.50, "big": 18446744073709551615}'"#]);
        rows.push(format!("({customers}, '{name} {customers}', {born}, {profile}, 0, NOW(6))"));
    }
    // Each identity is used once; the highest of an unsigned BIGINT is no exception.
    if *customers == 5 {
        rows.push(
            "(18446744073709551615, 'the last of them', NULL, NULL, 0, '9999-12-31 23:59:59.999999')"
                .to_owned(),
        );
    }
    w.run(&format!("INSERT INTO customers VALUES {}", rows.join(", ")), "COMMIT")
}

fn new_order(w: &mut Writer, customers: u64, orders: &mut u64) -> String {
    *orders += 1;
    let customer = w.below(customers) + 1;
    let mut statements = format!(
        "INSERT INTO orders VALUES ({orders}, {customer}, 'new', {}.{:02}, NOW(3), {})",
        w.below(10_000),
        w.below(100),
        w.pick(&NOTES)
    );
    let lines: Vec<String> = (1..=w.below(4) + 1)
        .map(|line| {
            let (quantity, price) = (w.below(9) as i64 - 1, w.below(1_000_000_000));
            format!("({orders}, {line}, RANDOM_BYTES(6), {quantity}, {price}.{price:010})")
        })
        .collect();
    statements.push_str(&format!(
        "; INSERT INTO order_lines VALUES {}; UPDATE customers SET orders = orders + 1, seen = NOW(6) WHERE id = {customer}",
        lines.join(", ")
    ));
    statements
}

/// Documents, and among them the large transaction.
fn documents(w: &mut Writer) -> Result<(), SqlError> {
    let (mut next, mut large) = (1_u64, false);
    while w.goes_on() {
        if !large && w.began.elapsed() > w.duration.mul_f64(0.4) {
            large = true;
            let inserts: Vec<String> = (0..LARGE_ROWS)
                .map(|row| {
                    format!(
                        "INSERT INTO documents VALUES ({}, 'large', REPEAT(RANDOM_BYTES(1000), {}), NULL, NULL, 2026)",
                        next + u64::from(row),
                        LARGE_BODY / 1000
                    )
                })
                .collect();
            next += u64::from(LARGE_ROWS);
            w.run(&inserts.join("; "), "COMMIT")?;
            w.wrote.largest_bytes = u64::from(LARGE_ROWS) * u64::from(LARGE_BODY);
            continue;
        }
        match w.below(10) {
            0..6 => {
                let bytes = w.below(2) * 900 + 1;
                let statement = format!(
                    "INSERT INTO documents VALUES ({next}, '{}', RANDOM_BYTES({bytes}), JSON_OBJECT('at', NOW(6), 'n', {}, 'ok', true), \
                     '-{}:59:59.99', {})",
                    w.pick(&["note", "scan", "мемо"]),
                    w.below(1_000_000),
                    w.below(838),
                    w.below(100) + 1950,
                );
                next += 1;
                w.run(&statement, "COMMIT")?;
            }
            6..8 => {
                let id = w.below(next);
                let statement = format!(
                    "UPDATE documents SET meta = JSON_ARRAY(meta, {}), kind = 'new' WHERE id = {id} AND kind <> 'large' AND JSON_DEPTH(COALESCE(meta, '1')) < 20",
                    w.below(100)
                );
                w.run(&statement, "COMMIT")?;
            }
            _ => {
                let id = w.below(next);
                w.run(&format!("DELETE FROM documents WHERE id = {id} AND kind <> 'large'"), "COMMIT")?;
            }
        }
    }
    Ok(())
}
