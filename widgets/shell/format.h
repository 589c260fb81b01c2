// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers, rates and times as people read them; QLocale for display. Pure functions, GUI thread (QLocale's default).
#pragma once

#include <QString>
#include <cstdint>

namespace sluice::gui {

// "52 of 120 (43 %)"; "no data yet" when n = 0.
QString rateText(std::int64_t k, std::int64_t n);
QString timeText(std::int64_t timeUs);      // clock time today, else with the date
QString ageText(std::int64_t timeUs, std::int64_t nowUs);  // "3 min ago"
QString bytesText(std::int64_t bytes);
QString versionText(std::int64_t version);  // "v3", "v0 (base)"
// A tool-tip that shows the text as it is, whatever markup a model or client wrote into it, and wraps it.
QString plainToolTip(const QString& text);
std::int64_t nowUs();

}  // namespace sluice::gui
