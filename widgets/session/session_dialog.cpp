// SPDX-License-Identifier: GPL-3.0-or-later
#include "session/session_dialog.h"

#include <QCheckBox>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFormLayout>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QVBoxLayout>

namespace sluice::gui {

SessionDialog::SessionDialog(QWidget* parent) : QDialog(parent) {
  setWindowTitle(tr("New session"));
  m_recipe = new QComboBox(this);
  m_recipe->setObjectName(QStringLiteral("recipe"));
  m_summary = new QLabel(this);
  m_summary->setTextFormat(Qt::PlainText);
  m_summary->setWordWrap(true);
  m_summary->setMinimumWidth(fontMetrics().averageCharWidth() * 60);
  m_name = new QLineEdit(this);
  m_name->setMaxLength(64);
  m_seed = new QSpinBox(this);
  m_seed->setRange(0, 1'000'000);
  m_seed->setValue(1);
  m_seed->setToolTip(tr("Same seed, same conditions: the same run"));
  m_gate = new QComboBox(this);
  m_gate->setObjectName(QStringLiteral("gateProfile"));
  m_gate->addItem(tr("As the recipe says"), QString());
  m_gate->addItem(tr("demo: quick, not for claims"), QStringLiteral("demo"));
  m_gate->addItem(tr("standard"), QStringLiteral("standard"));
  m_gate->addItem(tr("strict"), QStringLiteral("strict"));
  m_gate->addItem(tr("off: every update serves unmeasured"), QStringLiteral("off"));
  m_liveOnly = new QCheckBox(tr("Live only: no simulated user; traffic and verdicts come from clients and from you"), this);
  m_liveOnly->setObjectName(QStringLiteral("liveOnly"));
  m_requests = new QSpinBox(this);
  m_requests->setRange(-1, 1'000'000);
  m_requests->setValue(-1);
  m_requests->setSpecialValueText(tr("As the recipe says"));
  m_bad = new QCheckBox(tr("At the end, train one deliberately bad candidate to see the gate reject it"), this);
  m_bad->setChecked(true);
  auto* form = new QFormLayout;
  form->addRow(tr("Recipe"), m_recipe);
  form->addRow(QString(), m_summary);
  form->addRow(tr("Name"), m_name);
  form->addRow(tr("Seed"), m_seed);
  form->addRow(tr("Gate"), m_gate);
  form->addRow(QString(), m_liveOnly);
  form->addRow(tr("Simulated requests"), m_requests);
  form->addRow(QString(), m_bad);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel, this);
  m_start = buttons->addButton(tr("Start"), QDialogButtonBox::AcceptRole);
  m_start->setObjectName(QStringLiteral("start"));
  m_start->setDefault(true);
  m_start->setEnabled(false);
  m_start->setToolTip(tr("Reading the recipes …"));
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(form);
  layout->addWidget(buttons);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  connect(m_recipe, &QComboBox::currentIndexChanged, this, &SessionDialog::showRecipe);
  connect(m_liveOnly, &QCheckBox::toggled, this, [this](bool live) {
    m_requests->setEnabled(!live);
    m_bad->setEnabled(!live);
  });
}

void SessionDialog::setRecipes(std::vector<RecipeSummary> recipes) {
  m_recipes = std::move(recipes);
  for (const RecipeSummary& recipe : m_recipes) {
    m_recipe->addItem(tr("%1 (%2)").arg(QString::fromStdString(recipe.title), QString::fromStdString(recipe.name)));
  }
  m_start->setEnabled(!m_recipes.empty());
  m_start->setToolTip(m_recipes.empty() ? tr("No recipe was found.") : QString());
  showRecipe();
}

void SessionDialog::showRecipe() {
  const int index = m_recipe->currentIndex();
  if (index < 0) return;
  const RecipeSummary& recipe = m_recipes[static_cast<std::size_t>(index)];
  m_summary->setText(QString::fromStdString(recipe.summary));
  m_name->setPlaceholderText(QString::fromStdString(recipe.name));
}

StartSession SessionDialog::command() const {
  StartSession command;
  if (m_recipe->currentIndex() >= 0) command.recipe = m_recipes[static_cast<std::size_t>(m_recipe->currentIndex())].name;
  command.name = m_name->text().trimmed().toStdString();
  command.seed = static_cast<std::uint64_t>(m_seed->value());
  command.gate_profile = m_gate->currentData().toString().toStdString();
  command.live_only = m_liveOnly->isChecked();
  command.max_requests = m_liveOnly->isChecked() ? 0 : m_requests->value();
  command.bad_candidate = m_bad->isChecked();
  return command;
}

}  // namespace sluice::gui
