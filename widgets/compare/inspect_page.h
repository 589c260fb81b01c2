// SPDX-License-Identifier: GPL-3.0-or-later
// Look and try: a "try it" box (one prompt to what serves, or side by side to two versions), the table of records with search,
// and the word difference of two answers. GUI thread.
#pragma once

#include <QWidget>
#include <vector>

#include "bridge/engine_bridge.h"

class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QTableView;
class QTextBrowser;

namespace sluice::gui {

class RecordModel;

class InspectPage : public QWidget {
  Q_OBJECT
 public:
  explicit InspectPage(EngineBridge& bridge, QWidget* parent = nullptr);

  // Chooses the two versions of the side-by-side view and puts the focus into the prompt.
  void compareVersions(VersionId left, VersionId right);
  QString answerText(int side) const;  // 0 left, 1 right
  int recordCount() const;

 Q_SIGNALS:
  void labelled(const QString& text);
  void refused(const QString& reason);

 private:
  struct Side {
    QLabel* head = nullptr;
    QTextBrowser* text = nullptr;
    QString plain;
  };

  QWidget* makeAsk();
  QWidget* makeAnswers();
  QWidget* makeRecords();
  void ask(bool both);
  void showAnswers(const std::vector<Answer>& answers);
  void showSides(const QString& leftHead, const QString& left, const QString& rightHead, const QString& right);
  void label(FeedbackKind kind);
  void takeVersions(const Rows<VersionRow>& rows);
  void takeRecords(const Rows<RecordRow>& rows);
  void takePage(quint64 request, const Rows<RecordRow>& rows);
  void search();
  void loadMore();
  void showCount();
  void refreshFates(const StoreCounts& counts);
  void showSelected();

  EngineBridge& m_bridge;
  QPlainTextEdit* m_prompt;
  QPushButton* m_ask;
  QPushButton* m_both;
  QComboBox* m_left;
  QComboBox* m_right;
  bool m_rightChosen = false;
  QLabel* m_receipt;
  QPushButton* m_accept;
  QPushButton* m_reject;
  Side m_sides[2];
  RecordId m_answered;        // receipt that can be labelled
  QLineEdit* m_search;
  RecordModel* m_model;
  QTableView* m_table;
  QPushButton* m_more;
  QLabel* m_count;
  quint64 m_page = 0;
  quint64 m_fates = 0;        // request that re-reads the newest page
  std::int64_t m_trained = -1;
};

}  // namespace sluice::gui
