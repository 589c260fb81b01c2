// SPDX-License-Identifier: GPL-3.0-or-later
// The name that stands on a person's decisions and labels: the login name until another is chosen. GUI thread.
#pragma once

#include <QString>

namespace sluice::gui {

QString loginName();                     // "operator" where the system has none
QString userName();                      // never empty
void setUserName(const QString& name);   // kept for the next start; empty = the login name again

}  // namespace sluice::gui
