// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/format.h"

#include <QCoreApplication>
#include <QDateTime>
#include <QLocale>
#include <QTextDocument>

namespace sluice::gui {
namespace {

QString tr(const char* text, int n = -1) { return QCoreApplication::translate("sluice::gui", text, nullptr, n); }

}  // namespace

QString rateText(std::int64_t k, std::int64_t n) {
  if (n == 0) return tr("no data yet");
  const QLocale locale;
  return tr("%1 of %2 (%3 %)").arg(locale.toString(static_cast<qlonglong>(k)), locale.toString(static_cast<qlonglong>(n)),
                                   locale.toString(100.0 * static_cast<double>(k) / static_cast<double>(n), 'f', 0));
}

QString timeText(std::int64_t timeUs) {
  if (timeUs <= 0) return {};
  const QDateTime time = QDateTime::fromMSecsSinceEpoch(timeUs / 1000);
  const bool today = time.date() == QDate::currentDate();
  return today ? QLocale().toString(time.time(), QStringLiteral("HH:mm:ss"))
               : QLocale().toString(time, QLocale::ShortFormat);
}

QString ageText(std::int64_t timeUs, std::int64_t now) {
  const std::int64_t seconds = (now - timeUs) / 1'000'000;
  if (timeUs <= 0) return {};
  if (seconds < 60) return tr("just now");
  if (seconds < 3600) return tr("%n min ago", static_cast<int>(seconds / 60));
  if (seconds < 86400) return tr("%n h ago", static_cast<int>(seconds / 3600));
  return tr("%n day(s) ago", static_cast<int>(seconds / 86400));
}

QString bytesText(std::int64_t bytes) { return QLocale().formattedDataSize(bytes, 1, QLocale::DataSizeSIFormat); }

QString plainToolTip(const QString& text) { return text.isEmpty() ? QString() : Qt::convertFromPlainText(text, Qt::WhiteSpaceNormal); }

QString versionText(std::int64_t version) { return version == 0 ? tr("v0 (base)") : QStringLiteral("v%1").arg(version); }

std::int64_t nowUs() { return QDateTime::currentMSecsSinceEpoch() * 1000; }

}  // namespace sluice::gui
