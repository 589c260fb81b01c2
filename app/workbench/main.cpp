// SPDX-License-Identifier: GPL-3.0-or-later
// sluice: the workbench. The window comes first; workspace and model open behind it.
#include <QApplication>
#include <QCommandLineParser>
#include <QDir>
#include <QFileInfo>
#include <QIcon>
#include <QLibraryInfo>
#include <QLocale>
#include <QProcess>
#include <QSettings>
#include <QTimer>
#include <QTranslator>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "bridge/runtime_api.h"
#include "workbench/main_window.h"

namespace {

using sluice::gui::MainWindow;

constexpr int kRecent = 8;

QStringList rememberWorkspace(const QString& folder) {
  QSettings settings;
  QStringList recent = settings.value(QStringLiteral("recentWorkspaces")).toStringList();
  if (!folder.isEmpty()) {
    recent.removeAll(folder);
    recent.prepend(folder);
    while (recent.size() > kRecent) recent.removeLast();
    settings.setValue(QStringLiteral("recentWorkspaces"), recent);
  }
  return recent;
}

sluice::RuntimeOptions runtimeOptions(const QString& folder, const QString& model) {
  sluice::RuntimeOptions options;
  options.data_folder = folder.toStdString();
  options.model_path = model.toStdString();
  options.port = sluice::kPortOfWorkspace;
  return options;
}

// The user's language, else English (whose file holds the plurals).
void loadTexts(QTranslator& texts, QTranslator& qtTexts) {
  const QString folder = QStringLiteral(":/i18n");
  if (texts.load(QLocale(), QStringLiteral("sluice"), QStringLiteral("_"), folder) || texts.load(QStringLiteral("sluice_en"), folder)) {
    QCoreApplication::installTranslator(&texts);
  }
  if (qtTexts.load(QLocale(), QStringLiteral("qtbase"), QStringLiteral("_"), QLibraryInfo::path(QLibraryInfo::TranslationsPath))) {
    QCoreApplication::installTranslator(&qtTexts);
  }
}

}  // namespace

int main(int argc, char** argv) {
  QApplication app(argc, argv);
  QApplication::setOrganizationName(QStringLiteral("sluice"));
  QApplication::setApplicationName(QStringLiteral("sluice"));
  QApplication::setApplicationVersion(QStringLiteral(SLUICE_VERSION));
  QApplication::setDesktopFileName(QStringLiteral("io.sluice.Sluice"));

  QTranslator texts, qtTexts;
  loadTexts(texts, qtTexts);

  QCommandLineParser parser;
  parser.setApplicationDescription(QObject::tr("Serves a language model, learns from verdicts, lets updates in through a gate."));
  parser.addHelpOption();
  parser.addVersionOption();
  const QCommandLineOption data(QStringLiteral("data"), QObject::tr("The workspace folder."), QStringLiteral("DIR"));
  const QCommandLineOption model(QStringLiteral("model"), QObject::tr("A GGUF file or Hugging Face folder; default: the bundled model."), QStringLiteral("PATH"));
  const QCommandLineOption recipe(QStringLiteral("recipe"), QObject::tr("Start the demo with this recipe."), QStringLiteral("NAME|FILE"));
  const QCommandLineOption demo(QStringLiteral("demo"), QObject::tr("Start the demo as soon as the model is loaded."));
  parser.addOptions({data, model, recipe, demo});
  parser.process(app);
  if (!parser.positionalArguments().isEmpty()) {
    std::fprintf(stderr, "sluice: \"%s\" is not expected: see --help\n", qPrintable(parser.positionalArguments().constFirst()));
    return 2;
  }
  const QString folder = parser.isSet(data) ? QFileInfo(parser.value(data)).absoluteFilePath()
                                            : QString::fromStdString(sluice::Runtime::default_data_folder("default"));
  sluice::Log log;
  log.set_sink([](sluice::LogLevel level, std::string_view category, std::string_view text) {
    std::fprintf(stderr, "%s %.*s: %.*s\n", sluice::log_level_name(level), static_cast<int>(category.size()), category.data(),
                 static_cast<int>(text.size()), text.data());
  }, sluice::LogLevel::kWarning);

  std::thread opener;
  int exitCode = 0;
  {
    MainWindow window;
    window.setRecentWorkspaces(rememberWorkspace(QString()));
    if (parser.isSet(demo) || parser.isSet(recipe)) window.startDemoWhenReady(parser.value(recipe));
    // Another workspace means another engine and another lock: a new process, so that this one's work is not cut off.
    QObject::connect(&window, &MainWindow::workspaceRequested, &window, [&window](const QString& chosen) {
      const bool started = QProcess::startDetached(QCoreApplication::applicationFilePath(), {QStringLiteral("--data"), chosen});
      if (started && !window.bridge()) window.close();  // nothing is open here
    });
    // The workspace is made to survive a kill: leaving at once is one.
    QObject::connect(&window, &MainWindow::stopNowRequested, &window, [&window] {
      window.hide();
      std::_Exit(0);
    });
    window.show();
    const auto open = [&] {
      if (opener.joinable()) opener.join();  // an earlier try, which has told its outcome
      opener = std::thread([&window, &log, options = runtimeOptions(folder, parser.value(model)), folder] {
        auto opened = std::make_shared<sluice::Result<std::unique_ptr<sluice::Runtime>>>(sluice::Runtime::open(options, log));
        QMetaObject::invokeMethod(&window, [&window, opened, folder] {
          if (!opened->ok()) {
            window.showOpenProblem(QString::fromStdString(opened->status().message()));
            return;
          }
          window.setRecentWorkspaces(rememberWorkspace(folder));
          window.setEngine(std::make_unique<sluice::gui::RuntimeApi>(std::move(*opened).value()));
        }, Qt::QueuedConnection);
      });
    };
    QObject::connect(&window, &MainWindow::retryRequested, &window, open);
    // After the first paint: loading libraries, store and model must not hold it up.
    QTimer::singleShot(0, &window, open);
    exitCode = QApplication::exec();
    if (opener.joinable()) opener.join();
  }
  return exitCode;
}
