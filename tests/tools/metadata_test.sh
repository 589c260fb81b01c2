#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# metadata_test.sh RESOURCES: the desktop file and the metainfo file are valid and name the same id, and the icon is there.
set -eu
cd "$1"
id=io.sluice.Sluice
test -s "icons/$id.svg" || { echo "icons/$id.svg is missing"; exit 1; }
grep -q "^Icon=$id$" "$id.desktop" || { echo "$id.desktop names another icon"; exit 1; }
grep -q "<id>$id</id>" "metainfo/$id.metainfo.xml" || { echo "the metainfo file has another id"; exit 1; }
for tool in desktop-file-validate appstreamcli; do
  command -v $tool >/dev/null || { echo "skipped: $tool is not installed"; exit 77; }
done
desktop-file-validate --warn-kde "$id.desktop"
appstreamcli validate --no-net --explain "metainfo/$id.metainfo.xml"
