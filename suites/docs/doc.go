// Package docs has no code. Its tests check the documentation: the commands, the
// links and the anchors of README.md, CONTRIBUTING.md, docs/ and all other Markdown files.
package docs
