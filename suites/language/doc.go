// Package language tests the language of the project: the length of sentences in doc
// comments, and words that docs/glossary.md replaced with the terms of Kubernetes. The
// rules are in CONTRIBUTING.md.
package language
