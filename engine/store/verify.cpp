// SPDX-License-Identifier: GPL-3.0-or-later
// The consistency checks behind `sluice-headless verify`.
#include "store/chain.h"
#include "store/store_impl.h"

namespace sluice {
namespace {

using Problems = std::vector<std::string>;

// One problem per row of `sql`, made of its first columns.
void collect(Database& db, const std::string& sql, int columns, const std::string& prefix, Problems& out) {
  Statement s = db.prepare(sql);
  while (s.step()) {
    std::string line = prefix;
    for (int i = 0; i < columns; ++i) line += (i == 0 ? "" : " ") + s.get_text(i);
    out.push_back(line);
  }
}

void check_file(Database& db, Problems& out) {
  Statement s = db.prepare("PRAGMA integrity_check(20)");
  while (s.step()) {
    if (s.get_text(0) != "ok") out.push_back("database file: " + s.get_text(0));
  }
  collect(db, "SELECT \"table\", rowid, parent FROM pragma_foreign_key_check LIMIT 20", 3, "row without its parent: ", out);
}

void check_versions(Database& db, Problems& out) {
  const auto serving = query_value(db, std::int64_t{0}, "SELECT count(*) FROM version WHERE state = 'serving'");
  if (serving != 1) out.push_back(std::to_string(serving) + " versions are in state serving; it must be one");
  collect(db,
          "SELECT s.version FROM serving s JOIN version v ON v.id = s.version WHERE s.seq = (SELECT max(seq) FROM serving) "
          "AND v.state <> 'serving'",
          1, "the version in service is not in state serving: ", out);
  collect(db,
          "SELECT s.version FROM serving s LEFT JOIN decision d ON d.id = s.decision WHERE d.id IS NULL "
          "OR d.verdict <> 'promote'",
          1, "version put in service without a promote decision: ", out);
  // Commit times never run backwards, so an earlier time is an earlier commit.
  collect(db,
          "SELECT r.version, min(r.seq) FROM record r WHERE r.purpose = 'live' AND r.version IS NOT NULL AND NOT EXISTS "
          "(SELECT 1 FROM decision d WHERE d.version = r.version AND d.verdict = 'promote' AND d.time_us < r.served_us) "
          "GROUP BY r.version",
          2, "version answered clients before any promote decision (version, first record): ", out);
}

void check_training(Database& db, Problems& out) {
  collect(db, "SELECT id FROM record WHERE (fate = 'trained') <> (used_in_step IS NOT NULL) LIMIT 20", 1,
          "record whose fate and step disagree: ", out);
  collect(db, "SELECT id FROM record WHERE fate = 'trained' AND (purpose <> 'live' OR split <> 'train') LIMIT 20", 1,
          "record that must never train was trained on: ", out);
  collect(db, "SELECT b.id FROM batch b WHERE (b.state = 'trained') <> EXISTS (SELECT 1 FROM step s WHERE s.batch = b.id)",
          1, "batch whose state and step disagree: ", out);
}

}  // namespace

std::vector<std::string> Store::verify_decisions() const {
  return impl_->readers.read([](Database& db) {
    Problems out = check_chain(query_rows<DecisionRow>(db, "ORDER BY id"));
    if (Status error = db.take_error(); !error.ok()) out.push_back(error.message());
    return out;
  });
}

std::vector<std::string> Store::verify() const {
  Problems out = impl_->readers.read([](Database& db) {
    Problems found;
    check_file(db, found);
    check_versions(db, found);
    check_training(db, found);
    if (Status error = db.take_error(); !error.ok()) found.push_back(error.message());
    return found;
  });
  for (std::string& line : verify_decisions()) out.push_back(std::move(line));
  return out;
}

}  // namespace sluice
