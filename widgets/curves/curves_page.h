// SPDX-License-Identifier: GPL-3.0-or-later
// The curve cards of one session, the learning curve large at the top left: acceptance, rejection rate, training, tokens per
// second. x is the count of requests or the time since the start. Takes rows from the bridge as they come; refreshes every
// 200 ms while visible and dirty, one card a tick. GUI thread.
#pragma once

#include <QLabel>
#include <QMap>
#include <QTimer>
#include <QWidget>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "bridge/engine_bridge.h"
#include "bridge/series.h"
#include "curves/curve_view.h"

class QComboBox;
class QGridLayout;
class QSlider;
class QToolButton;

namespace sluice::gui {

class CurvesPage : public QWidget {
  Q_OBJECT
 public:
  explicit CurvesPage(EngineBridge& bridge, QWidget* parent = nullptr);

  // Which session is drawn; invalid = the newest one.
  void showSession(SessionId session);
  SessionId session() const { return m_session; }

  const Series& series(const QString& metric) const;
  CurveView* card(const QString& id) const;
  QString cardHead(const QString& id) const;
  // The verdicts on a session's live requests, oldest first: 1 = accepted.
  std::vector<double> verdicts(SessionId session) const;
  enum class XAxis { kRequests, kMinutes };
  void setXAxis(XAxis axis);

  // Every point of the drawn session as CSV: metric,x,value,time.
  QString csv() const;

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  struct Line {
    QString metric;
    QString name;
    enum class Kind { kSmoothed, kRolling } kind = Kind::kSmoothed;
  };
  struct Card {
    QString id, title, empty;
    std::vector<Line> lines;
    std::optional<Range> range;
    CurveView* view = nullptr;
    QLabel* head = nullptr;
    QLabel* placeholder = nullptr;
    QToolButton* live = nullptr;
    bool dirty = true;
    std::vector<std::vector<CurvePoint>> derived;  // the strong one of each line
    std::vector<std::vector<CurvePoint>> pale;     // of each rolling line, in place of its points
  };

  struct Place {
    int row, column, rows;
  };

  QWidget* makeControls();
  void buildCards();
  void addCard(const QString& id, const QString& title, const QString& empty, std::vector<Line> lines, std::optional<Range> range, Place place);
  CurvePoint pointOf(const MetricRow& row) const;
  void takeMetrics(const Rows<MetricRow>& rows);
  void takeDecisions(const Rows<DecisionRow>& rows);
  void takeVersions(const Rows<VersionRow>& rows);
  void takeSessions(const Rows<SessionRow>& rows);
  void showSessionHead();    // which one is drawn, and under what conditions it ran
  void rebuild();            // the drawn session changed
  void refreshNext();
  void refreshCard(Card& card);
  bool isOfSession(const DecisionRow& row) const;
  void updateMarks();

  EngineBridge& m_bridge;
  std::vector<SessionRow> m_sessions;          // ascending
  SessionId m_session;
  bool m_followNewest = true;
  std::vector<MetricRow> m_rows;               // all sessions, in order
  QMap<QString, Series> m_series;              // of the drawn session
  std::vector<DecisionRow> m_decisions;
  std::map<std::int64_t, std::string> m_labels;  // of versions that have one
  std::vector<CurveMark> m_marks;
  std::vector<Card> m_cards;
  std::size_t m_nextCard = 0;
  QTimer m_refresh;
  QGridLayout* m_grid;
  QComboBox* m_axis;
  QSlider* m_smoothing;
  QLabel* m_conditions;
  XAxis m_x = XAxis::kRequests;
  std::int64_t m_startedUs = 0;   // of the drawn session
  std::int64_t m_nextStartUs = std::numeric_limits<std::int64_t>::max();  // of the one after it
};

}  // namespace sluice::gui
