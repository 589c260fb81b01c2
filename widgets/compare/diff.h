// SPDX-License-Identifier: GPL-3.0-or-later
// Word-by-word difference of two texts. Pure function; meant for a job thread when texts are long.
#pragma once

#include <QString>
#include <vector>

namespace sluice::gui {

struct DiffPiece {
  enum class Kind { kSame, kRemoved, kAdded } kind = Kind::kSame;
  QString text;
  bool operator==(const DiffPiece&) const = default;
};

// Words and the white space between them (Unicode word boundaries); neighbours of one kind are joined. Above kMaxWords a
// side is compared line by line.
inline constexpr qsizetype kMaxWords = 3000;
std::vector<DiffPiece> wordDiff(const QString& before, const QString& after);

// One side of the difference as HTML: removed struck through and orange, added underlined and blue.
QString diffHtml(const std::vector<DiffPiece>& pieces, bool afterSide, const QString& removedColor, const QString& addedColor);

}  // namespace sluice::gui
