// SPDX-License-Identifier: GPL-3.0-or-later
#include "start/start_page.h"

#include <QClipboard>
#include <QFileInfo>
#include <QFontDatabase>
#include <QGroupBox>
#include <QGuiApplication>
#include <QHBoxLayout>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QVBoxLayout>

#include "bridge/engine_api.h"
#include "shell/format.h"
#include "shell/words.h"

namespace sluice::gui {

StartPage::StartPage(QWidget* parent) : QWidget(parent) {
  auto* outer = new QHBoxLayout(this);
  auto* column = new QVBoxLayout;
  auto* title = new QLabel(tr("Sluice"), this);
  QFont big = title->font();
  big.setPointSizeF(big.pointSizeF() * 2.2);
  big.setBold(true);
  title->setFont(big);
  auto* line = new QLabel(tr("Serve a model, learn from what people accept, and let an update into service only when it is proven better."), this);
  line->setWordWrap(true);
  m_problem = new QLabel(this);
  m_problem->setObjectName(QStringLiteral("problem"));
  m_problem->setTextFormat(Qt::PlainText);
  m_problem->setWordWrap(true);
  m_problem->setVisible(false);
  m_problem->setTextInteractionFlags(Qt::TextSelectableByMouse);
  column->addStretch(1);
  column->addWidget(title);
  column->addWidget(line);
  m_retry = new QPushButton(tr("Try again"), this);
  m_retry->setObjectName(QStringLiteral("tryAgain"));
  m_retry->setVisible(false);
  connect(m_retry, &QPushButton::clicked, this, &StartPage::retryRequested);
  column->addWidget(m_problem);
  column->addWidget(m_retry, 0, Qt::AlignLeft);
  column->addSpacing(fontMetrics().height());
  column->addWidget(makeActions());
  column->addWidget(makeServer());
  column->addWidget(makeRecent());
  column->addStretch(2);
  outer->addStretch(1);
  outer->addLayout(column, 4);
  outer->addStretch(1);
  showState(nullptr);
}

QWidget* StartPage::makeActions() {
  auto* box = new QWidget(this);
  auto* layout = new QVBoxLayout(box);
  layout->setContentsMargins(0, 0, 0, 0);
  m_modelLine = new QLabel(box);
  m_modelLine->setObjectName(QStringLiteral("modelLine"));
  m_modelLine->setTextFormat(Qt::PlainText);
  m_modelLine->setWordWrap(true);
  m_demo = new QPushButton(tr("Run the demo"), box);
  m_demo->setObjectName(QStringLiteral("runDemo"));
  m_demo->setDefault(true);
  m_demo->setMinimumHeight(fontMetrics().height() * 3);
  m_demo->setToolTip(tr("A simulated user asks the built-in model questions and accepts short answers. In a few minutes you see it "
                        "learn, updates pass or fail the gate, and you can roll any of them back."));
  m_demo->setProperty("help", m_demo->toolTip());
  auto* hint = new QLabel(tr("About five minutes. A simulated user wants short answers; watch the curve rise, move a threshold, roll back."), box);
  hint->setWordWrap(true);
  m_resume = new QPushButton(tr("Resume the session"), box);
  m_resume->setObjectName(QStringLiteral("resumeSession"));
  m_resume->setVisible(false);
  m_end = new QPushButton(tr("End it"), box);
  m_end->setObjectName(QStringLiteral("endOpenSession"));
  m_end->setToolTip(tr("Its answers, verdicts and versions are kept; what serves goes on serving."));
  m_end->setVisible(false);
  m_sessionLine = new QLabel(box);
  m_sessionLine->setObjectName(QStringLiteral("sessionLine"));
  m_sessionLine->setTextFormat(Qt::PlainText);
  m_sessionLine->setWordWrap(true);
  m_sessionLine->hide();
  m_session = new QPushButton(tr("Start a session …"), box);
  m_session->setObjectName(QStringLiteral("startSession"));
  m_model = new QPushButton(tr("Use a model of your own …"), box);
  m_model->setObjectName(QStringLiteral("chooseModel"));
  m_fit = new QLabel(box);
  m_fit->setObjectName(QStringLiteral("modelFit"));
  m_fit->setTextFormat(Qt::PlainText);
  m_fit->setWordWrap(true);
  m_fit->hide();
  layout->addWidget(m_modelLine);
  m_startsFrom = new QLabel(box);
  m_startsFrom->setObjectName(QStringLiteral("startsFrom"));
  m_startsFrom->setTextFormat(Qt::PlainText);
  m_startsFrom->setWordWrap(true);
  m_base = new QPushButton(tr("Roll back to the base …"), box);
  m_base->setObjectName(QStringLiteral("rollBackToBase"));
  auto* from = new QHBoxLayout;
  from->addWidget(m_startsFrom, 1);
  from->addWidget(m_base);
  layout->addWidget(m_demo);
  layout->addWidget(hint);
  layout->addLayout(from);
  layout->addWidget(m_sessionLine);
  auto* row = new QHBoxLayout;
  row->addWidget(m_resume);
  row->addWidget(m_end);
  row->addWidget(m_session);
  row->addWidget(m_model);
  row->addStretch(1);
  layout->addLayout(row);
  layout->addWidget(m_fit);
  connect(m_demo, &QPushButton::clicked, this, &StartPage::demoRequested);
  connect(m_session, &QPushButton::clicked, this, &StartPage::sessionRequested);
  connect(m_resume, &QPushButton::clicked, this, &StartPage::resumeRequested);
  connect(m_end, &QPushButton::clicked, this, &StartPage::endRequested);
  connect(m_model, &QPushButton::clicked, this, &StartPage::modelRequested);
  connect(m_base, &QPushButton::clicked, this, &StartPage::baseRequested);
  return box;
}

QWidget* StartPage::makeServer() {
  auto* box = new QGroupBox(tr("Point a client at it"), this);
  auto* layout = new QVBoxLayout(box);
  m_serverLine = new QLabel(box);
  m_serverLine->setObjectName(QStringLiteral("serverLine"));
  m_serverLine->setTextFormat(Qt::PlainText);
  m_serverLine->setWordWrap(true);
  m_snippet = new QLabel(box);
  m_snippet->setObjectName(QStringLiteral("snippet"));
  m_snippet->setTextFormat(Qt::PlainText);
  m_snippet->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  m_snippet->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  m_copy = new QPushButton(tr("Copy"), box);
  m_copy->setAccessibleName(tr("Copy the client snippet"));
  m_port = new QPushButton(tr("Choose a port …"), box);
  m_port->setObjectName(QStringLiteral("choosePort"));
  m_port->setVisible(false);
  auto* row = new QHBoxLayout;
  row->addWidget(m_snippet, 1);
  row->addWidget(m_copy, 0, Qt::AlignTop);
  row->addWidget(m_port, 0, Qt::AlignTop);
  layout->addWidget(m_serverLine);
  layout->addLayout(row);
  connect(m_copy, &QPushButton::clicked, this, [this] { QGuiApplication::clipboard()->setText(clientSnippet()); });
  connect(m_port, &QPushButton::clicked, this, &StartPage::portRequested);
  return box;
}

QWidget* StartPage::makeRecent() {
  auto* box = new QGroupBox(tr("Recent workspaces"), this);
  auto* layout = new QVBoxLayout(box);
  m_recent = new QListWidget(box);
  m_recent->setObjectName(QStringLiteral("recentWorkspaces"));
  m_recent->setMaximumHeight(fontMetrics().height() * 6);
  auto* other = new QPushButton(tr("Open another workspace …"), box);
  layout->addWidget(m_recent);
  layout->addWidget(other, 0, Qt::AlignLeft);
  connect(m_recent, &QListWidget::itemActivated, this, [this](QListWidgetItem* item) { Q_EMIT workspaceRequested(item->text()); });
  connect(other, &QPushButton::clicked, this, [this] { Q_EMIT workspaceRequested(QString()); });
  return box;
}

void StartPage::setRecentWorkspaces(const QStringList& folders) {
  m_recent->clear();
  m_recent->addItems(folders);
  if (folders.isEmpty()) {
    auto* none = new QListWidgetItem(tr("None yet: the demo makes the first one."), m_recent);
    none->setFlags(Qt::NoItemFlags);
  }
}

void StartPage::showProblem(const QString& text) {
  m_problem->setText(text);
  m_problem->setVisible(!text.isEmpty());
  m_retry->setVisible(!text.isEmpty());
  QFont bold = m_problem->font();
  bold.setBold(true);
  m_problem->setFont(bold);
  // What would be said while it opens is no longer true.
  m_modelLine->setVisible(text.isEmpty());
  showState(nullptr);
  if (!text.isEmpty()) m_serverLine->setText(tr("The server runs where a workspace is open."));
}

void StartPage::showModelFit(const QString& text) {
  m_fit->setText(text);
  m_fit->setVisible(!text.isEmpty());
}

QString StartPage::clientSnippet() const {
  if (m_url.isEmpty()) return {};
  return QStringLiteral("curl %1/v1/chat/completions -H 'Content-Type: application/json' \\\n"
                        "  -d '{\"messages\":[{\"role\":\"user\",\"content\":\"Why is the sky blue?\"}],\"max_tokens\":96}'")
      .arg(m_url);
}

void StartPage::showState(const EngineState* state) {
  const bool ready = state && state->phase == EnginePhase::kReady;
  const bool runs = state && state->session && state->session->state == SessionState::kRunning;
  const bool paused = state && state->session && state->session->state == SessionState::kPaused;
  if (!state) {
    m_modelLine->setText(tr("Opening the workspace …"));
  } else if (state->phase == EnginePhase::kLoading) {
    m_modelLine->setText(state->model_path.empty() ? tr("Opening the workspace …") : tr("Reading %1 …").arg(QFileInfo(QString::fromStdString(state->model_path)).fileName()));
  } else if (state->phase == EnginePhase::kModelFailed) {
    m_modelLine->setText(QString::fromStdString(state->model_error));
  } else {
    m_modelLine->setText(tr("Model: %1 (%2, %3)")
                             .arg(QString::fromStdString(state->model_name), QString::fromStdString(state->quantisation),
                                  bytesText(state->model_bytes)));
  }
  const bool failed = state && state->phase == EnginePhase::kModelFailed;
  const QString wait = !m_problem->text().isEmpty() ? m_problem->text()
                       : failed             ? tr("No model is loaded: choose a file that fits.")
                       : !ready             ? tr("The model is still loading.")
                       : runs || paused     ? tr("A session is open already: end it first.")
                                            : QString();
  for (QPushButton* button : {m_demo, m_session}) {
    button->setEnabled(wait.isEmpty());
    button->setToolTip(wait.isEmpty() ? button->property("help").toString() : plainToolTip(wait));
  }
  const bool learnt = ready && !state->session && state->serving != kBaseVersion;
  m_startsFrom->setVisible(learnt);
  m_base->setVisible(learnt);
  if (learnt) m_startsFrom->setText(tr("%1 of an earlier run serves: a new run starts from it, and its curve where that one ended.").arg(adapterText(state->serving_name)));
  m_resume->setVisible(paused);
  m_end->setVisible(paused || (runs && state->session_through));
  const bool kept = paused && !state->session_problem.empty();
  m_sessionLine->setVisible(kept);
  if (kept) {
    m_sessionLine->setText(tr("“%1” can't go on: %2").arg(QString::fromStdString(state->session->name), QString::fromStdString(state->session_problem)));
  }
  if (paused) m_resume->setText(tr("Resume “%1”").arg(QString::fromStdString(state->session->name)));
  m_model->setEnabled(state && !runs && !paused);
  m_url = state ? QString::fromStdString(state->server_url) : QString();
  const QString problem = state ? QString::fromStdString(state->server_error) : QString();
  const bool loading = state && state->phase == EnginePhase::kLoading;
  m_serverLine->setText(!m_url.isEmpty() && loading ? tr("Listening on %1; requests are told to come again until the model is loaded.").arg(m_url)
                        : !m_url.isEmpty() ? tr("Listening on %1 (OpenAI routes; any OpenAI client works).").arg(m_url)
                        : !problem.isEmpty() ? problem : tr("The server starts with the model."));
  m_snippet->setText(clientSnippet());
  m_copy->setVisible(!m_url.isEmpty());
  m_port->setVisible(!problem.isEmpty());
}

}  // namespace sluice::gui
