// SPDX-License-Identifier: GPL-3.0-or-later
// One reply at a time, large text, one key a verdict: A accept, X reject, S skip, U undo. What was skipped comes back by U, and
// by G when nothing else waits. Blind: no version, no other verdict until decided. The page moves on when the label is
// committed. GUI thread.
#pragma once

#include <QWidget>
#include <deque>
#include <optional>
#include <set>
#include <vector>

#include "bridge/engine_bridge.h"

class QLabel;
class QListWidget;
class QPushButton;
class QTextBrowser;

namespace sluice::gui {

class LabelPage : public QWidget {
  Q_OBJECT
 public:
  explicit LabelPage(EngineBridge& bridge, QWidget* parent = nullptr);

  QString currentRecord() const;
  int decided() const { return m_decided; }
  QStringList history() const;     // newest first
  QString statusText() const;

 public Q_SLOTS:
  void accept();
  void reject();
  void skip();
  void undo();          // the last verdict or skip
  void showSkipped();   // again, once the queue is empty

 protected:
  void showEvent(QShowEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;

 private:
  struct Done {
    RecordRow record;
    FeedbackId feedback;
    FeedbackKind kind = FeedbackKind::kAccept;
    QString fate;              // what becomes of it, in words
    bool retracted = false;
  };

  struct Skipped {
    RecordRow record;
    std::size_t decidedBefore = 0;  // of m_done: tells whether it or a verdict came last
  };

  void build();
  void fetch();
  void askPage(qint64 beforeSeq);
  void prune(const std::vector<RecordRow>& page);
  void takePage(quint64 request, const Rows<RecordRow>& rows);
  void takeRecords(const Rows<RecordRow>& rows);
  void askFates(const StoreCounts& counts);
  void takeFate(const Rows<RecordRow>& record, const Rows<FeedbackRow>& feedback);
  void enqueue(const RecordRow& row);
  void showCurrent();
  bool offersSkipped() const { return m_queue.empty() && !m_skipped.empty(); }
  void decide(FeedbackKind kind);
  void takeSkipBack();
  void takeLabelBack();
  void showHistory();

  EngineBridge& m_bridge;
  std::deque<RecordRow> m_queue;           // front = shown
  std::vector<Skipped> m_skipped;          // oldest first
  std::set<std::string> m_seen;            // queued, skipped or decided here or by a person before
  std::vector<Done> m_done;                // oldest first
  quint64 m_pageRequest = 0;
  int m_pagesLeft = 0;
  std::int64_t m_trained = -1;
  bool m_saving = false;
  int m_decided = 0;

  QLabel* m_progress;
  QLabel* m_prompt;
  QTextBrowser* m_reply;
  QLabel* m_status;
  QPushButton* m_accept;
  QPushButton* m_reject;
  QPushButton* m_skip;
  QPushButton* m_undo;
  QPushButton* m_again;
  QListWidget* m_history;
};

}  // namespace sluice::gui
