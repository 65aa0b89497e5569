# SPDX-License-Identifier: MIT OR Apache-2.0
# shellcheck shell=sh
# To be sourced by what compares a page of docs/ with what was printed: numbers
# are as they come, and so are the spaces of a table.
plain() { sed -E 's/[0-9A-F]{8,}/N/g; s/[0-9]+([-,.][0-9]+)*/N/g; s/ +/ /g; s/ $//'; }

# FILE: the lines of its console blocks.
console() { sed -n '/^```console/,/^```$/p' "$1" | grep -v '^```'; }
