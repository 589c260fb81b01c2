// SPDX-License-Identifier: GPL-3.0-or-later
// Keys that make the gate impossible to go round: a function that takes one can only be called by code that was handed
// one by its single maker. Values, copyable, no thread rules.
#pragma once

#include "base/ids.h"

namespace sluice {

// Proof that a decision row stands in the database. Only Store makes it, from a row it has just committed or read back
// inside its own write path. AdapterHost::publish takes nothing else.
class CommittedDecision {
 public:
  DecisionId decision() const { return decision_; }
  VersionId version() const { return version_; }   // what serves from now on
  VersionId previous() const { return previous_; }  // what served before; equal to version() on a start-up publish

 private:
  friend class Store;
  CommittedDecision(DecisionId d, VersionId v, VersionId p) : decision_(d), version_(v), previous_(p) {}

  DecisionId decision_;
  VersionId version_;
  VersionId previous_;
};

// Leave to generate with a version that clients can't reach (candidate, anchor, held ...). Only Registry makes it, for
// the gate's shadow evaluation and the side-by-side view. Such answers never train and never reach an OpenAI route.
class VersionPass {
 public:
  VersionId version() const { return version_; }

 private:
  friend class Registry;
  explicit VersionPass(VersionId v) : version_(v) {}

  VersionId version_;
};

}  // namespace sluice
