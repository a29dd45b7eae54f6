"""The version in the names of release files; make_release.sh compares it with runtime/base/version.h."""

VERSION = "0.1.0"
