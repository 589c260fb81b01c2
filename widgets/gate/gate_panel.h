// SPDX-License-Identifier: GPL-3.0-or-later
// The gate: what is being measured now, thresholds on one draft (slider + spin box), what the draft would have done to past
// decisions, and every verdict with its sentence. GUI thread.
#pragma once

#include <QJsonObject>
#include <QTimer>
#include <QWidget>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "bridge/engine_bridge.h"
#include "gate/threshold_specs.h"

class QDoubleSpinBox;
class QGridLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QScrollArea;
class QSlider;
class QVBoxLayout;

namespace sluice::gui {

class VerdictCard;

class GatePanel : public QWidget {
  Q_OBJECT
 public:
  explicit GatePanel(EngineBridge& bridge, QWidget* parent = nullptr);

  bool draftDiffers() const { return m_draft != m_inForce; }
  double draftValue(const QString& name) const;
  void setDraftValue(const QString& name, double value);
  QString progressText() const;
  QStringList verdictTexts() const;  // newest first
  QStringList verdictHeads() const;
  // Brings the card of a held version into sight, ready for the reason of a decision by hand.
  void showHeldCard(VersionId version);

 public Q_SLOTS:
  void apply();
  void discard();

 Q_SIGNALS:
  void refused(const QString& reason);
  void applied(const QString& text);

 private:
  static constexpr int kSliderSteps = 1000;
  struct Row {
    ThresholdSpec spec;
    QSlider* slider = nullptr;
    QDoubleSpinBox* spin = nullptr;
    QLabel* changed = nullptr;
  };

  QWidget* makeProgress();
  QWidget* makeThresholds();
  QWidget* makeFurther(QWidget* parent);
  QWidget* makeVerdicts();
  void addRow(QWidget* parent, QGridLayout* grid, const ThresholdSpec& spec);
  void readInForce();
  void takeInForce(const QJsonObject& settings, SettingsId id);
  std::string draftText() const;
  QStringList changes() const;
  void put(const PutGateSettings& command, const QJsonObject& draft);
  void applyEnded();
  void showDraft();
  void showState();
  void takeVersions(const Rows<VersionRow>& rows);
  void takeDecisions(const Rows<DecisionRow>& rows);
  void addCard(const DecisionRow& row);
  void showHeld();
  std::vector<VerdictCard*> cards() const;  // newest first
  const std::string& labelOf(VersionId version) const;
  void decideByHand(const QString& action, qint64 version, const QString& note);
  void askWhatIf();

  EngineBridge& m_bridge;
  QJsonObject m_inForce;
  QJsonObject m_draft;
  SettingsId m_settingsId;
  bool m_known = false;                   // what is in force was read
  bool m_applying = false;
  quint64 m_readGeneration = 0;
  std::vector<Row> m_rows;
  std::vector<DecisionRow> m_decisions;   // ascending
  std::set<std::int64_t> m_held;          // versions that wait for a person
  std::map<std::int64_t, std::string> m_labels;  // of versions that have one, such as the deliberately bad one
  QLabel* m_measuring;
  QLabel* m_rates;
  QLabel* m_bets;
  QProgressBar* m_pairs;
  QLabel* m_whatIf;
  QLabel* m_rejections;
  QLineEdit* m_note;
  QPushButton* m_apply;
  QPushButton* m_discard;
  QScrollArea* m_scroll;
  QVBoxLayout* m_cards;
  QTimer m_whatIfTimer;
  quint64 m_whatIfGeneration = 0;
};

}  // namespace sluice::gui
