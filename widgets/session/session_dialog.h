// SPDX-License-Identifier: GPL-3.0-or-later
// What a new session runs: recipe, seed, gate profile, with or without the simulated user. Opens at once; the recipes come
// when they are read. GUI thread.
#pragma once

#include <QDialog>
#include <vector>

#include "bridge/engine_bridge.h"

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace sluice::gui {

class SessionDialog : public QDialog {
  Q_OBJECT
 public:
  explicit SessionDialog(QWidget* parent = nullptr);
  void setRecipes(std::vector<RecipeSummary> recipes);
  StartSession command() const;

 private:
  void showRecipe();

  std::vector<RecipeSummary> m_recipes;
  QComboBox* m_recipe;
  QLabel* m_summary;
  QLineEdit* m_name;
  QSpinBox* m_seed;
  QComboBox* m_gate;
  QCheckBox* m_liveOnly;
  QSpinBox* m_requests;
  QCheckBox* m_bad;
  QPushButton* m_start;
};

}  // namespace sluice::gui
