// SPDX-License-Identifier: GPL-3.0-or-later
#include "shell/user_name.h"

#include <pwd.h>
#include <unistd.h>

#include <QCoreApplication>
#include <QSettings>

namespace sluice::gui {
namespace {

constexpr char kKey[] = "user/name";

// A program without a name (a test) keeps nothing.
bool keeps() { return !QCoreApplication::organizationName().isEmpty(); }

}  // namespace

QString loginName() {
  for (const char* variable : {"USER", "LOGNAME"}) {
    const QString name = qEnvironmentVariable(variable).trimmed();
    if (!name.isEmpty()) return name;
  }
  const passwd* entry = getpwuid(geteuid());
  const QString name = entry && entry->pw_name ? QString::fromLocal8Bit(entry->pw_name) : QString();
  return name.isEmpty() ? QStringLiteral("operator") : name;
}

QString userName() {
  const QString chosen = keeps() ? QSettings().value(QLatin1String(kKey)).toString().trimmed() : QString();
  return chosen.isEmpty() ? loginName() : chosen;
}

void setUserName(const QString& name) {
  if (keeps()) QSettings().setValue(QLatin1String(kKey), name.trimmed());
}

}  // namespace sluice::gui
