// SPDX-License-Identifier: GPL-3.0-or-later
// Notices inside the view concerned, stacked: an id (a new one replaces its twin), severity, text that can be copied, what
// can be done about it. Information goes after eight seconds; notices, warnings and errors stay until solved or dismissed. GUI thread.
#pragma once

#include <QHash>
#include <QWidget>
#include <functional>
#include <vector>

class QVBoxLayout;

namespace sluice::gui {

class InfoBar : public QWidget {
  Q_OBJECT
 public:
  enum class Severity { kInformation, kNotice, kWarning, kError };

  explicit InfoBar(QWidget* parent = nullptr);

  struct Action {
    QString text;
    std::function<void()> run;
    bool keep = false;   // the notice stays: what it says holds after the click, too
  };

  void show(const QString& id, Severity severity, const QString& text, std::vector<Action> actions = {});
  void dismiss(const QString& id);
  bool has(const QString& id) const { return m_bars.contains(id); }
  QString text(const QString& id) const;
  // Presses the nth action of a notice, as a click does; for keyboard and tests.
  bool trigger(const QString& id, int n = 0);

 private:
  QVBoxLayout* m_layout;
  QHash<QString, QWidget*> m_bars;
};

}  // namespace sluice::gui
