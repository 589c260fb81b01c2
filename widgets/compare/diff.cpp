// SPDX-License-Identifier: GPL-3.0-or-later
#include "compare/diff.h"

#include <QStringList>
#include <QTextBoundaryFinder>
#include <dtl/dtl.hpp>
#include <algorithm>
#include <string>

namespace sluice::gui {
namespace {

std::vector<std::string> words(const QString& text) {
  std::vector<std::string> out;
  QTextBoundaryFinder finder(QTextBoundaryFinder::Word, text);
  qsizetype from = 0;
  for (qsizetype to = finder.toNextBoundary(); to >= 0; to = finder.toNextBoundary()) {
    if (to > from) out.push_back(text.mid(from, to - from).toStdString());
    from = to;
  }
  return out;
}

std::vector<std::string> lines(const QString& text) {
  std::vector<std::string> out;
  for (const QString& line : text.split(QLatin1Char('\n'))) out.push_back(line.toStdString() + '\n');
  return out;
}

}  // namespace

std::vector<DiffPiece> wordDiff(const QString& before, const QString& after) {
  auto a = words(before), b = words(after);
  if (static_cast<qsizetype>(std::max(a.size(), b.size())) > kMaxWords) {
    a = lines(before);
    b = lines(after);
  }
  dtl::Diff<std::string> diff(a, b);
  diff.compose();
  std::vector<DiffPiece> out;
  for (const auto& [text, info] : diff.getSes().getSequence()) {
    const auto kind = info.type == dtl::SES_DELETE ? DiffPiece::Kind::kRemoved
                      : info.type == dtl::SES_ADD  ? DiffPiece::Kind::kAdded
                                                   : DiffPiece::Kind::kSame;
    if (out.empty() || out.back().kind != kind) out.push_back({kind, {}});
    out.back().text += QString::fromStdString(text);
  }
  return out;
}

QString diffHtml(const std::vector<DiffPiece>& pieces, bool afterSide, const QString& removedColor, const QString& addedColor) {
  QString html;
  for (const DiffPiece& piece : pieces) {
    const QString text = piece.text.toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>"));
    if (piece.kind == DiffPiece::Kind::kSame) {
      html += text;
    } else if (piece.kind == DiffPiece::Kind::kRemoved && !afterSide) {
      html += QStringLiteral("<span style='color:%1;text-decoration:line-through'>%2</span>").arg(removedColor, text);
    } else if (piece.kind == DiffPiece::Kind::kAdded && afterSide) {
      html += QStringLiteral("<span style='color:%1;text-decoration:underline'>%2</span>").arg(addedColor, text);
    }
  }
  return html;
}

}  // namespace sluice::gui
