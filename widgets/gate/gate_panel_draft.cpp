// SPDX-License-Identifier: GPL-3.0-or-later
// The draft of the gate panel: what is in force, what a person moved, what that would have done, and putting it into force.
#include <QDoubleSpinBox>
#include <QJsonDocument>
#include <QLabel>
#include <QLineEdit>
#include <QLocale>
#include <QPushButton>
#include <QSignalBlocker>
#include <QSlider>
#include <cmath>
#include <utility>

#include "gate/gate_panel.h"
#include "gate/loosen_sheet.h"
#include "shell/outcome_text.h"

namespace sluice::gui {
namespace {

QJsonValue valueAt(const QJsonObject& object, const QStringList& path) {
  QJsonValue value = object;
  for (const QString& key : path) value = value.toObject().value(key);
  return value;
}

void setAt(QJsonObject& object, const QStringList& path, const QJsonValue& value) {
  if (path.size() == 1) {
    object.insert(path.front(), value);
    return;
  }
  QJsonObject inner = object.value(path.front()).toObject();
  setAt(inner, path.mid(1), value);
  object.insert(path.front(), inner);
}

}  // namespace

void GatePanel::readInForce() {
  const quint64 generation = ++m_readGeneration;  // latest wins
  const auto work = [](const EngineApi& api) {
    SettingsId id;
    std::string json = api.gate_settings_json(&id);
    return std::pair(QByteArray::fromStdString(json), id);
  };
  m_bridge.job(this, work, [this, generation](const std::pair<QByteArray, SettingsId>& now) {
    if (generation == m_readGeneration) takeInForce(QJsonDocument::fromJson(now.first).object(), now.second);
  });
}

void GatePanel::takeInForce(const QJsonObject& settings, SettingsId id) {
  const QJsonObject before = std::exchange(m_inForce, settings);
  const QJsonObject mine = std::exchange(m_draft, m_inForce);
  m_settingsId = id;
  if (!std::exchange(m_known, true)) {
    for (const Row& row : m_rows) {
      row.slider->setEnabled(true);
      row.spin->setEnabled(true);
    }
    return showDraft();
  }
  // Only what was moved here is laid over what others put into force meanwhile: "Apply" must not undo their changes.
  for (const Row& row : m_rows) {
    const QJsonValue moved = valueAt(mine, row.spec.path);
    if (moved.toDouble() != valueAt(before, row.spec.path).toDouble()) setAt(m_draft, row.spec.path, moved);
  }
  showDraft();
  if (draftDiffers()) m_whatIfTimer.start();
}

double GatePanel::draftValue(const QString& name) const { return valueAt(m_draft, name.split(QLatin1Char('.'))).toDouble(); }

void GatePanel::setDraftValue(const QString& name, double value) {
  if (!m_known) return;
  const QStringList path = name.split(QLatin1Char('.'));
  const bool whole = path.size() == 1 && (name == QLatin1String("n_min") || name == QLatin1String("cap"));
  if (whole) {
    setAt(m_draft, path, static_cast<int>(std::lround(value)));
  } else {
    setAt(m_draft, path, value);
  }
  showDraft();
  m_whatIfTimer.start();
}

void GatePanel::showDraft() {
  const QLocale locale;
  for (Row& row : m_rows) {
    const double draft = valueAt(m_draft, row.spec.path).toDouble();
    const double now = valueAt(m_inForce, row.spec.path).toDouble();
    const QSignalBlocker blockSlider(row.slider), blockSpin(row.spin);
    row.slider->setValue(static_cast<int>(std::lround((draft - row.spec.low) / (row.spec.high - row.spec.low) * kSliderSteps)));
    row.spin->setValue(draft);
    row.changed->setText(draft == now ? QString() : tr("was %1").arg(locale.toString(now, 'g', 3)));
  }
  m_apply->setEnabled(draftDiffers() && !m_applying);
  m_discard->setEnabled(draftDiffers());
  if (!draftDiffers()) m_whatIf->setText(tr("Move a threshold to see what it would have done to past decisions."));
}

void GatePanel::askWhatIf() {
  if (!draftDiffers()) return;
  const quint64 generation = ++m_whatIfGeneration;  // latest wins
  const auto work = [draft = draftText()](const EngineApi& api) { return api.what_if(draft); };
  m_bridge.job(this, work, [this, generation](const Result<WhatIfSummary>& result) {
    if (generation != m_whatIfGeneration) return;
    if (!result.ok()) {
      m_whatIf->setText(QString::fromStdString(result.status().message()));
      return;
    }
    if (result->decisions == 0) {
      m_whatIf->setText(tr("No past decision to compare with yet."));
      return;
    }
    m_whatIf->setText(tr("Over %1 past decisions: would have rejected %2, recorded %3; %4 differ, %5 would need more pairs.")
                          .arg(result->decisions).arg(result->draft_rejects).arg(result->recorded_rejects)
                          .arg(result->differ).arg(result->need_more));
  });
}

std::string GatePanel::draftText() const { return QJsonDocument(m_draft).toJson(QJsonDocument::Compact).toStdString(); }

QStringList GatePanel::changes() const {
  const QLocale locale;
  QStringList out;
  for (const Row& row : m_rows) {
    const double draft = valueAt(m_draft, row.spec.path).toDouble(), now = valueAt(m_inForce, row.spec.path).toDouble();
    if (draft != now) out << tr("%1: %2 instead of %3").arg(row.spec.name, locale.toString(draft, 'g', 3), locale.toString(now, 'g', 3));
  }
  return out;
}

// A draft that lets more through asks once (gate.md §5); whether it does, only the engine's settings can say.
void GatePanel::apply() {
  if (!draftDiffers() || m_applying) return;
  m_applying = true;
  m_apply->setText(tr("Applying …"));
  showDraft();
  PutGateSettings command;
  command.settings_json = draftText();
  command.if_match = m_settingsId;
  command.who = m_bridge.user();
  command.note = m_note->text().toStdString();
  const auto work = [draft = command.settings_json](const EngineApi& api) { return api.loosens(draft); };
  m_bridge.job(this, work, [this, command, moved = changes(), draft = m_draft](const Result<bool>& loosens) {
    if (!loosens.ok() || !*loosens) return put(command, draft);  // the engine says what is wrong with a draft it can't read
    auto* sheet = new LoosenSheet(moved, this);
    sheet->setAttribute(Qt::WA_DeleteOnClose);
    connect(sheet, &QDialog::accepted, this, [this, command, draft] { put(command, draft); });
    connect(sheet, &QDialog::rejected, this, &GatePanel::applyEnded);
    sheet->open();
  });
}

void GatePanel::put(const PutGateSettings& command, const QJsonObject& draft) {
  m_bridge.submit(command, this, [this, draft](const CommandOutcome& outcome) {
    if (!outcome.ok()) {
      Q_EMIT refused(QString::fromStdString(outcome.text));
    } else {
      m_note->clear();
      m_inForce = draft;
      if (outcome.settings) m_settingsId = *outcome.settings;
      readInForce();
      Q_EMIT applied(outcomeText(PutGateSettings{}, outcome, m_bridge.state()));
    }
    applyEnded();
  });
}

void GatePanel::applyEnded() {
  m_applying = false;
  m_apply->setText(tr("Apply"));
  showDraft();
}

void GatePanel::discard() {
  m_draft = m_inForce;
  showDraft();
}

}  // namespace sluice::gui
