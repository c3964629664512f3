// Package docs contains only tests. They check the commands, the links and the anchors in all
// Markdown files of the project, such as README.md and the pages in docs/.
package docs
