#!/bin/sh
# Writes sqlite3.c and sqlite3.h to a folder: the amalgamation, by its digest, from the Go module that has it.
set -eu
module=github.com/mattn/go-sqlite3@v1.14.32
source=$(go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
echo "ff5f3fb4a741b4959304753058c31e875c0fb4886c9e909d476941962a11aa63  $source/sqlite3-binding.c
e06ea0a25b8b98f9de6659668d8ed3759775fab2f36095b61acbf3480a2cf2ac  $source/sqlite3-binding.h" | sha256sum -c --quiet
cat "$source/sqlite3-binding.c" > "$1/sqlite3.c"
cat "$source/sqlite3-binding.h" > "$1/sqlite3.h"
