// SPDX-License-Identifier: GPL-3.0-or-later
// Colours by meaning, for light and dark palettes. Every painter asks here; meaning never rests on colour alone.
#pragma once

#include <QColor>
#include <QPalette>

namespace sluice::gui {

class Theme {
 public:
  explicit Theme(const QPalette& palette);

  bool dark() const { return m_dark; }
  QColor pass() const;
  QColor fail() const;
  QColor wait() const;
  QColor off() const;
  QColor added() const;
  QColor removed() const;
  QColor addedBackground() const;
  QColor removedBackground() const;
  QColor background() const { return m_background; }
  QColor text() const { return m_text; }
  QColor mutedText() const;
  QColor grid() const;
  // Okabe-Ito, in an order that keeps neighbours apart; wraps round.
  QColor series(int index) const;

 private:
  QColor m_background;
  QColor m_text;
  bool m_dark;
};

// WCAG 2 contrast ratio, 1 to 21.
double contrastRatio(const QColor& a, const QColor& b);

}  // namespace sluice::gui
