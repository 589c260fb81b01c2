// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/theme.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sluice::gui {
namespace {

QColor mix(const QColor& a, const QColor& b, double share) {
  return QColor::fromRgbF(static_cast<float>(a.redF() * (1 - share) + b.redF() * share),
                          static_cast<float>(a.greenF() * (1 - share) + b.greenF() * share),
                          static_cast<float>(a.blueF() * (1 - share) + b.blueF() * share));
}

double luminance(const QColor& color) {
  const auto linear = [](double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); };
  return 0.2126 * linear(color.redF()) + 0.7152 * linear(color.greenF()) + 0.0722 * linear(color.blueF());
}

}  // namespace

Theme::Theme(const QPalette& palette)
    : m_background(palette.color(QPalette::Base)),
      m_text(palette.color(QPalette::Text)),
      m_dark(palette.color(QPalette::Window).lightnessF() < palette.color(QPalette::WindowText).lightnessF()) {}

QColor Theme::pass() const { return m_dark ? QColor(0x4c, 0xc3, 0x8a) : QColor(0x0b, 0x6b, 0x43); }
QColor Theme::fail() const { return m_dark ? QColor(0xff, 0x8a, 0x65) : QColor(0xa8, 0x32, 0x0e); }
QColor Theme::wait() const { return m_dark ? QColor(0xe6, 0xb4, 0x50) : QColor(0x7a, 0x55, 0x00); }
QColor Theme::off() const { return mutedText(); }
QColor Theme::added() const { return m_dark ? QColor(0x7a, 0xb8, 0xff) : QColor(0x0a, 0x4f, 0xa3); }
QColor Theme::removed() const { return m_dark ? QColor(0xff, 0xa8, 0x5c) : QColor(0x9a, 0x45, 0x00); }
QColor Theme::addedBackground() const { return mix(m_background, added(), 0.14); }
QColor Theme::removedBackground() const { return mix(m_background, removed(), 0.14); }
QColor Theme::mutedText() const { return mix(m_text, m_background, 0.3); }
QColor Theme::grid() const { return mix(m_background, m_text, 0.15); }

QColor Theme::series(int index) const {
  static const std::array<QColor, 7> light = {QColor(0x00, 0x72, 0xb2), QColor(0xd5, 0x5e, 0x00), QColor(0x00, 0x9e, 0x73),
                                              QColor(0xcc, 0x79, 0xa7), QColor(0xe6, 0x9f, 0x00), QColor(0x56, 0xb4, 0xe9),
                                              QColor(0x55, 0x55, 0x55)};
  QColor color = light[static_cast<std::size_t>(index) % light.size()];
  return m_dark ? color.lighter(125) : color;
}

double contrastRatio(const QColor& a, const QColor& b) {
  const double la = luminance(a), lb = luminance(b);
  return (std::max(la, lb) + 0.05) / (std::min(la, lb) + 0.05);
}

}  // namespace sluice::gui
