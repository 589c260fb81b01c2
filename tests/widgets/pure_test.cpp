// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the window that are plain functions: curves, differences, timeline, colours.
#include <QFile>
#include <QTranslator>
#include <QXmlStreamReader>
#include <QtTest>
#include <algorithm>
#include <cmath>
#include <utility>

#include "bridge/series.h"
#include "compare/diff.h"
#include "shell/outcome_text.h"
#include "shell/theme.h"
#include "timeline/lane_map.h"

using namespace sluice;
using namespace sluice::gui;

// Translates straight from the file of translations, as the program does from what is made of it.
class FileTranslator : public QTranslator {
 public:
  explicit FileTranslator(const QString& path) {
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly)) return;
    QXmlStreamReader xml(&file);
    QString context, source;
    while (!xml.atEnd()) {
      if (xml.readNext() != QXmlStreamReader::StartElement) continue;
      if (xml.name() == QLatin1String("name")) context = xml.readElementText();
      if (xml.name() == QLatin1String("source")) source = xml.readElementText();
      if (xml.name() == QLatin1String("translation")) texts.insert({context, source}, xml.readElementText(QXmlStreamReader::IncludeChildElements));
    }
  }
  bool isEmpty() const override { return texts.isEmpty(); }
  QString translate(const char* context, const char* source, const char*, int) const override {
    return texts.value({QString::fromUtf8(context), QString::fromUtf8(source)});
  }
  QHash<std::pair<QString, QString>, QString> texts;
};

class PureTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void whatACommandCameToIsSaidInTheLanguageOfTheUser() {
    FileTranslator chinese(QStringLiteral(SLUICE_TRANSLATIONS "/sluice_zh_CN.ts"));
    QVERIFY(!chinese.isEmpty());
    QVERIFY(QCoreApplication::installTranslator(&chinese));
    const std::vector<Command> commands{LoadModel{}, StartServer{}, StartSession{}, PauseSession{}, ResumeSession{}, EndSession{}, TrainOn{},
                                        DiscardTraining{}, PutGateSettings{}, ServeBaseAndFreeze{}, GiveLabel{}, TakeLabelBack{}, ExportAdapter{}};
    for (const Command& command : commands) {
      const QString text = outcomeText(command, CommandOutcome(), EngineState());
      const bool han = std::any_of(text.begin(), text.end(), [](QChar c) { return c.script() == QChar::Script_Han; });
      QVERIFY2(han, qPrintable(text));
    }
    QCoreApplication::removeTranslator(&chinese);
  }

  void envelopeKeepsExtremesInOrder() {
    std::vector<CurvePoint> points;
    for (int i = 0; i < 10000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.01)});
    points[5000].y = 9;   // one spike among ten thousand points
    points[7000].y = -9;
    const auto drawn = envelope(points, 0, 9999, 200);
    QVERIFY(drawn.size() <= 2 * 200 + 4);
    bool spike = false, dip = false;
    for (std::size_t i = 1; i < drawn.size(); ++i) {
      QVERIFY(drawn[i].x >= drawn[i - 1].x);
      spike |= drawn[i].y == 9;
      dip |= drawn[i].y == -9;
    }
    QVERIFY(spike);
    QVERIFY(dip);
  }

  void envelopeEdgesStandStill() {
    std::vector<CurvePoint> points;
    for (int i = 0; i < 5000; ++i) points.push_back({static_cast<double>(i), static_cast<double>((i * 7919) % 101)});
    const auto before = envelope(points, 0, 4000, 100);
    points.push_back({5000, 3});
    const auto after = envelope(points, 0, 4000, 100);
    QVERIFY(before == after);
  }

  void envelopeShowsGaps() {
    const std::vector<CurvePoint> points{{0, 1}, {1, std::nan("")}, {2, 3}};
    const auto drawn = envelope(points, 0, 2, 100);
    QCOMPARE(drawn.size(), std::size_t{3});
    QVERIFY(std::isnan(drawn[1].y));
  }

  void smoothingLeavesAConstant() {
    std::vector<CurvePoint> points;
    for (int i = 0; i < 50; ++i) points.push_back({i * 1.7, 0.42});
    for (const CurvePoint& p : smoothed(points, 0.9)) QVERIFY(std::abs(p.y - 0.42) < 1e-12);
  }

  void smoothingKeepsItsScaleUnderIrregularSpacing() {
    // A far point forgets as much as the steps between would have.
    const auto near = smoothed({{0, 1}, {1, 0}, {2, 0}, {3, 0}}, 0.5);
    const auto far = smoothed({{0, 1}, {3, 0}}, 0.5);
    QVERIFY(std::abs(near.back().y - far.back().y) < 0.05);
  }

  void rollingMeanWaitsForEnough() {
    std::vector<CurvePoint> points;
    for (int i = 0; i < 40; ++i) points.push_back({static_cast<double>(i), i < 20 ? 0.0 : 1.0});
    const auto mean = rollingMean(points, 10, 5);
    QVERIFY(std::isnan(mean[3].y));
    QCOMPARE(mean[4].y, 0.0);
    QCOMPARE(mean[39].y, 1.0);
    QCOMPARE(mean[24].y, 0.5);
  }

  void latePointsFindTheirPlace() {
    Series series;
    series.add({3, 1});
    series.add({1, 2});
    series.add({2, 3});
    QCOMPARE(series.points()[0].x, 1.0);
    QCOMPARE(series.points()[1].x, 2.0);
    QCOMPARE(series.points()[2].x, 3.0);
  }

  void ticksAreRound() {
    QCOMPARE(tickInterval({0, 10}, 5), 2.0);
    QCOMPARE(tickInterval({0, 1}, 4), 0.5);
    QCOMPARE(tickInterval({0, 0}, 4), 1.0);
  }

  void aConstantWithNoiseInItsLastBitsHasAnAxis() {
    const double value = 1.4, noisy = std::nextafter(value, 2.0);
    const Range range = autoRange({{0, value}, {1, noisy}});
    QVERIFY(range.high - range.low > 0.05);
    const double tick = tickInterval({value, noisy}, 4);
    QVERIFY(value + tick > noisy);
  }

  void diffNamesWhatChanged() {
    const auto pieces = wordDiff(QStringLiteral("The sky is blue today."), QStringLiteral("The sky is grey today."));
    QString removed, added, before, after;
    for (const DiffPiece& piece : pieces) {
      if (piece.kind == DiffPiece::Kind::kRemoved) removed += piece.text;
      if (piece.kind == DiffPiece::Kind::kAdded) added += piece.text;
      if (piece.kind != DiffPiece::Kind::kAdded) before += piece.text;
      if (piece.kind != DiffPiece::Kind::kRemoved) after += piece.text;
    }
    QCOMPARE(removed, QStringLiteral("blue"));
    QCOMPARE(added, QStringLiteral("grey"));
    QCOMPARE(before, QStringLiteral("The sky is blue today."));
    QCOMPARE(after, QStringLiteral("The sky is grey today."));
  }

  void diffEscapesHtml() {
    const auto pieces = wordDiff(QStringLiteral("<b>x</b>"), QStringLiteral("<b>y</b>"));
    const QString html = diffHtml(pieces, true, QStringLiteral("#111"), QStringLiteral("#222"));
    QVERIFY(!html.contains(QStringLiteral("<b>")));
    QVERIFY(html.contains(QStringLiteral("&lt;")));
  }

  // A label that came after the step is `consumed`: no step used that one.
  void aLabelTakenBackSaysWhetherAStepUsedIt() {
    const auto said = [](const char* state) {
      CommandOutcome outcome;
      outcome.feedback_state = state;
      return outcomeText(TakeLabelBack{}, outcome, EngineState());
    };
    QVERIFY(said("used").contains(QStringLiteral("A step used this label already")));
    for (const char* state : {"consumed", "waiting", "late"}) QCOMPARE(said(state), QStringLiteral("Taken back."));
  }

  void segmentsFollowThePromotions() {
    std::vector<DecisionRow> rows(4);
    const auto set = [&](int i, std::int64_t version, Verdict verdict, std::int64_t time) {
      rows[static_cast<std::size_t>(i)].version = VersionId(version);
      rows[static_cast<std::size_t>(i)].verdict = verdict;
      rows[static_cast<std::size_t>(i)].time_us = time;
    };
    set(0, 0, Verdict::kPromote, 10);
    set(1, 1, Verdict::kReject, 20);
    set(2, 2, Verdict::kPromote, 30);
    set(3, 0, Verdict::kPromote, 40);
    const auto segments = servingSegments(rows);
    QCOMPARE(segments.size(), std::size_t{3});
    QCOMPARE(segments[1].version.value, std::int64_t{2});
    QCOMPARE(segments[1].from_us, std::int64_t{30});
    QCOMPARE(segments[1].to_us, std::int64_t{40});
    QCOMPARE(segments[2].to_us, std::int64_t{0});
  }

  void coloursCanBeRead() {
    QPalette light, dark;
    light.setColor(QPalette::Base, Qt::white);
    light.setColor(QPalette::Text, Qt::black);
    light.setColor(QPalette::Window, QColor(0xef, 0xef, 0xef));
    light.setColor(QPalette::WindowText, Qt::black);
    dark.setColor(QPalette::Base, QColor(0x1e, 0x1e, 0x1e));
    dark.setColor(QPalette::Text, Qt::white);
    dark.setColor(QPalette::Window, QColor(0x2d, 0x2d, 0x2d));
    dark.setColor(QPalette::WindowText, Qt::white);
    for (const QPalette& palette : {light, dark}) {
      const Theme theme(palette);
      for (const QColor& color : {theme.pass(), theme.fail(), theme.wait(), theme.off(), theme.added(), theme.removed()}) {
        QVERIFY2(contrastRatio(color, palette.color(QPalette::Base)) >= 4.5, qPrintable(color.name()));
        QVERIFY2(contrastRatio(color, palette.color(QPalette::Window)) >= 4.5, qPrintable(color.name()));
      }
    }
  }
};

QTEST_GUILESS_MAIN(PureTest)
#include "pure_test.moc"
