<?xml version="1.0" encoding="utf-8"?>
<!DOCTYPE TS>
<TS version="2.1" language="en_US" sourcelanguage="en_US">
    <context>
        <name>sluice::gui::CurvesPage</name>
        <message numerus="yes">
            <source>: %1 · %n point(s)</source>
            <translation>
                <numerusform>: %1 · %n point</numerusform>
                <numerusform>: %1 · %n points</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source> · %n point(s), not enough for a rate yet</source>
            <translation>
                <numerusform> · %n point, not enough for a rate yet</numerusform>
                <numerusform> · %n points, not enough for a rate yet</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::InspectPage</name>
        <message numerus="yes">
            <source>%1 · %n token(s) · %2 s · ended by %3</source>
            <translation>
                <numerusform>%1 · %n token · %2 s · ended by %3</numerusform>
                <numerusform>%1 · %n tokens · %2 s · ended by %3</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n shown</source>
            <translation>
                <numerusform>%n shown</numerusform>
                <numerusform>%n shown</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::IntakeCard</name>
        <message numerus="yes">
            <source>%n request(s)</source>
            <translation>
                <numerusform>%n request</numerusform>
                <numerusform>%n requests</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n answer(s) kept</source>
            <translation>
                <numerusform>%n answer kept</numerusform>
                <numerusform>%n answers kept</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n verdict(s): %1 accepted, %2 rejected</source>
            <translation>
                <numerusform>%n verdict: %1 accepted, %2 rejected</numerusform>
                <numerusform>%n verdicts: %1 accepted, %2 rejected</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::LaneView</name>
        <message numerus="yes">
            <source>%1 serves; %n version(s).</source>
            <translation>
                <numerusform>%1 serves; %n version.</numerusform>
                <numerusform>%1 serves; %n versions.</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::MainWindow</name>
        <message numerus="yes">
            <source>%n request(s) running</source>
            <translation>
                <numerusform>%n request running</numerusform>
                <numerusform>%n requests running</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>%n error(s)</source>
            <translation>
                <numerusform>%n error</numerusform>
                <numerusform>%n errors</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Training waits for you: it is %n step(s) ahead of what serves, and the gate has nothing left to measure.</source>
            <translation>
                <numerusform>Training waits for you: it is %n step ahead of what serves, and the gate has nothing left to measure.</numerusform>
                <numerusform>Training waits for you: it is %n steps ahead of what serves, and the gate has nothing left to measure.</numerusform>
            </translation>
        </message>
        <message numerus="yes">
            <source>Training waits for you: the gate could not decide on %n candidate(s), which are held (%1), and has nothing left to measure. Promote or reject by hand, train on to the next candidate, or discard what was learnt since %2.</source>
            <translation>
                <numerusform>Training waits for you: the gate could not decide on %n candidate, which is held (%1), and has nothing left to measure. Promote or reject it by hand, train on to the next candidate, or discard what was learnt since %2.</numerusform>
                <numerusform>Training waits for you: the gate could not decide on %n candidates, which are held (%1), and has nothing left to measure. Promote or reject by hand, train on to the next candidate, or discard what was learnt since %2.</numerusform>
            </translation>
        </message>
    </context>
    <context>
        <name>sluice::gui::TimelinePage</name>
        <message numerus="yes">
            <source>Parent: %1, %n step(s) along its line</source>
            <translation>
                <numerusform>Parent: %1, %n step along its line</numerusform>
                <numerusform>Parent: %1, %n steps along its line</numerusform>
            </translation>
        </message>
    </context>
</TS>
